import type { Scenario } from '../scenario.ts';
import { call, calls, say, script } from '../script.ts';
import { goodResult, lineOf, pathIn } from './demo-results.ts';

const BUG = `.replace('&', '&amp;')`;

export const demoCheck: Scenario = {
  name: 'demo-check',
  description: 'part of demo: the sub-agent that looks for the same mistake elsewhere',
  args: { slow: '1: two seconds a turn (0)' },
  play: script(
    [
      calls('I look for every `replace` with a string as its pattern.', [
        { name: 'grep', input: { pattern: `\\.replace\\(['"]`, glob: '*.js', output_mode: 'content', '-n': true } },
        { name: 'glob', input: { pattern: 'src/*.js' } },
      ]),
      ({ lastResults }) =>
        call(
          'read',
          { file_path: pathIn(lastResults, 'src/html.js') },
          { text: 'src/html.js has it too. I read it, to see whether more than one occurrence matters there.' },
        ),
      ({ lastResults }) => {
        goodResult(lastResults, 'read');
        const line = lineOf(lastResults, BUG);
        return say(
          `Yes: src/html.js, line ${line}, has the same mistake. \`escapeHtml\` replaces only the first \`&\`, \`<\` and ` +
            '`>` of a text, so the second tag of a note gets into the page unescaped. Its test has one of each and ' +
            'does not notice. src/summary.js and bin/report.js are fine.',
        );
      },
    ],
    say('There is nothing to add: `replace` in src/html.js must be `replaceAll`.'),
  ),
};
