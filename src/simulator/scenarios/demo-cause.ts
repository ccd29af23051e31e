import type { Scenario } from '../scenario.ts';
import { calls, say, script } from '../script.ts';
import { goodResult, lineOf, pathIn } from './demo-results.ts';

const BUG = `text.replace('"', '""')`;

export const demoCause: Scenario = {
  name: 'demo-cause',
  description: 'part of demo: the sub-agent that finds the cause of the failing test',
  args: { slow: '1: two seconds a turn (0)' },
  play: script(
    [
      calls('I start from the failing test and the code it calls.', [
        { name: 'glob', input: { pattern: '**/csv*.js' } },
        { name: 'grep', input: { pattern: 'several quotes', glob: '*.js', output_mode: 'content' } },
      ]),
      ({ lastResults }) =>
        calls('The test writes a field and reads it back, so the mistake is in `format` or in `parse`.', [
          { name: 'read', input: { file_path: pathIn(lastResults, 'test/csv.test.js') } },
          { name: 'read', input: { file_path: pathIn(lastResults, 'src/csv.js') } },
        ]),
      ({ lastResults }) => {
        goodResult(lastResults, 'read');
        const line = lineOf(lastResults, BUG);
        return say(
          `The cause is in src/csv.js, line ${line}: \`${BUG}\` doubles only the first quote of a field, because ` +
            '`replace` with a string replaces one occurrence. A field with several quotes is then closed too early when ' +
            'it is read. `parse` is right. Use `replaceAll`.',
        );
      },
    ],
    say('There is nothing to add: `replace` in src/csv.js must be `replaceAll`.'),
  ),
};
