import { toMarker } from '../marker.ts';
import { UnexpectedResult } from '../scenario.ts';
import type { Call, CallResult, Play, Scenario, View } from '../scenario.ts';
import { calls, checkResults, say, script } from '../script.ts';
import { goodResult, pathIn, testsPassed } from './demo-results.ts';

const TASKS = [
  'Find the cause of the failing test',
  'Look for the same mistake elsewhere',
  'Fix both places',
  'Add a test and run them all',
];

export const demo: Scenario = {
  name: 'demo',
  description: 'repairs the example csv-report: looks around, delegates to two sub-agents, edits, tests and reports',
  args: { slow: '1: two seconds a turn, for killing things by hand (0)' },
  play: (view) =>
    script([lookAround, runTests, delegate, readBoth, editBoth, testAgain, tickOff, report], finished)(view),
};

const lookAround: Play = () =>
  calls('I look around first: which files there are, and where CSV is written.', [
    { name: 'glob', input: { pattern: '**/*.js' } },
    { name: 'grep', input: { pattern: 'export function', glob: '*.js', output_mode: 'content' } },
    { name: 'read', input: { file_path: 'README.md' } },
  ]);

const runTests: Play = ({ lastResults }) => {
  goodResult(lastResults, 'glob');
  goodResult(lastResults, 'read');
  pathIn(lastResults, 'src/csv.js');
  return calls('A small project with three modules. I run the tests to see what fails.', [
    { name: 'bash', input: { command: 'node --test' } },
  ]);
};

const delegate: Play = (view) => {
  const passed = testsPassed(view.lastResults);
  if (passed === true) return say('All tests pass already, so there is nothing to repair. I changed nothing.');
  const seen =
    passed === false
      ? 'One test fails: a field with several quotes does not survive a round trip.'
      : `The tests could not be run ("${shellProblem(view.lastResults)}"), but the README says which one fails.`;
  return calls(`${seen} I let two sub-agents look at it side by side.`, [todos(0, 2), ...tasks(view)]);
};

const readBoth: Play = ({ lastResults, results }) => {
  const [cause, check, ...more] = lastResults.filter((result) => result.name === 'task');
  if (!cause || !check || more.length > 0)
    throw new UnexpectedResult('two reports', `${lastResults.length} results came`);
  const agreed = [reportProblem(cause, 'src/csv.js'), reportProblem(check, 'src/html.js')].every((one) => !one);
  const words = agreed
    ? 'Both agree: `replace` with a string stops after the first occurrence. I read both places.'
    : 'Not both sub-agents came to an end, so I look for myself: I read the places that may be wrong.';
  return calls(words, [
    { name: 'read', input: { file_path: pathIn(results, 'src/csv.js') } },
    { name: 'read', input: { file_path: pathIn(results, 'src/html.js') } },
    todos(2, 3),
  ]);
};

const editBoth: Play = ({ lastResults, results }) => {
  const [csv, html] = lastResults.filter((result) => result.name === 'read');
  const quote = codeIn(csv?.text, `text.replace('"', '""')`);
  const escapes = codeIn(html?.text, `.replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;')`);
  return calls('The same change in both: `replaceAll`.', [
    toEdit(pathIn(results, 'src/csv.js'), quote),
    toEdit(pathIn(results, 'src/html.js'), escapes),
  ]);
};

const testAgain: Play = ({ lastResults, results }) => {
  checkResults({ tool: 'edit', isError: false }, lastResults);
  const folder = pathIn(results, 'src/html.js').replace(/src\/html\.js$/, '');
  return calls('No test would have noticed the second place, so I add one. Then I run them all.', [
    { name: 'write', input: { file_path: `${folder}test/html-several.test.js`, content: NEW_TEST } },
    { name: 'bash', input: { command: 'node --test' } },
  ]);
};

const tickOff: Play = ({ lastResults }) => {
  goodResult(lastResults, 'write');
  if (testsPassed(lastResults) === false) {
    const output = lastResults.find((result) => result.name === 'bash')?.text ?? '';
    throw new UnexpectedResult('the tests to pass (exit code: 0)', `bash gave "${output.slice(-600)}"`);
  }
  return calls('That is all. I tick off the list.', [todos(TASKS.length, TASKS.length)]);
};

const report: Play = ({ results }) => {
  const last = results.filter((result) => result.name === 'bash').slice(-1);
  const proof = testsPassed(last)
    ? 'All tests pass, the new one included.'
    : `I could not run the tests at the end: ${shellProblem(last)}`;
  return say(
    'Fixed. `String.replace` with a string replaces only the first occurrence:\n\n' +
      '- src/csv.js: only the first quote of a field was doubled; the failing test showed it.\n' +
      '- src/html.js: only the first `&`, `<` and `>` was escaped; no test noticed, and it let markup into the page.\n\n' +
      `Both use \`replaceAll\` now, and test/html-several.test.js covers the second. ${proof}`,
  );
};

const finished = say('The work is done: both places use `replaceAll`, and a new test covers the second.');

const NEW_TEST = `import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapeHtml } from '../src/html.js';

test('every special character is escaped, not only the first', () => {
  assert.equal(escapeHtml('<a> & <b> & co'), '&lt;a&gt; &amp; &lt;b&gt; &amp; co');
});
`;

/** Undefined for a report about the file; a sub-agent that was stopped is a fact to work with, all else is not. */
function reportProblem(result: CallResult, file: string): string | undefined {
  if (result.isError && /cancel|stopp|interrupt|terminat|lost/i.test(result.text)) {
    return 'stopped';
  }
  checkResults([{ isError: false, matches: /\[Agent: / }], [result]);
  checkResults([{ includes: file }], [result]);
  return undefined;
}

function shellProblem(results: readonly CallResult[]): string {
  const text = results.find((result) => result.name === 'bash')?.text ?? '';
  return (text.split('\n')[0] ?? '').slice(0, 200);
}

/** The code as it is in the file, or a loud failure: the example is not what this scenario knows. */
function codeIn(text: string | undefined, code: string): string {
  if (text?.includes(code)) return code;
  throw new UnexpectedResult(`${code} in the file`, `the read result was "${(text ?? '').slice(0, 400)}"`);
}

function toEdit(path: string, code: string): Call {
  return {
    name: 'edit',
    input: { file_path: path, old_string: code, new_string: code.replaceAll('.replace(', '.replaceAll(') },
  };
}

/** The list with the first `done` completed and the next ones, up to `active`, in progress. */
function todos(done: number, active: number): Call {
  const status = (index: number): string => (index < done ? 'completed' : index < active ? 'in_progress' : 'pending');
  return { name: 'todo_write', input: { todos: TASKS.map((content, index) => ({ content, status: status(index) })) } };
}

function tasks({ args }: View): Call[] {
  const one = (description: string, prompt: string, scenario: string): Call => ({
    name: 'task',
    input: { description, prompt: `${prompt} ${toMarker(scenario, { slow: args.slow })}`, agent_type: 'explore' },
  });
  return [
    one(
      'find the cause of the failing test',
      'The test "a field with several quotes survives a round trip" in test/csv.test.js fails. Find the cause in src/csv.js; report file, line and reason. Change nothing.',
      'demo-cause',
    ),
    one(
      'check other modules for the mistake',
      'In src/csv.js a special character seems to be escaped only once per text. Check the other modules for the same mistake; report file and line. Change nothing.',
      'demo-check',
    ),
  ];
}
