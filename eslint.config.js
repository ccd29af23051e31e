import { readdirSync } from 'node:fs';
import { builtinModules } from 'node:module';
import tseslint from 'typescript-eslint';

/**
 * Who may import whom inside src/. `may`: code and types; `types`: types only; what is not listed is refused, new
 * folders included. `packages`: the only packages; missing means any but the ones of PACKAGE_HOMES.
 */
const IMPORT_TABLE = {
  policy: {
    may: [],
    packages: [],
    because: 'policy/ is pure data and pure functions, since workflows run it. Pass in what it needs.',
  },
  'protocol.ts': {
    may: [],
    types: ['policy'],
    packages: [],
    because: 'protocol.ts is loaded everywhere, also by workflows. Keep it to plain types and constants.',
  },
  'failures.ts': {
    may: ['protocol.ts'],
    packages: ['@temporalio/common'],
    because: 'failures.ts is loaded by workflows. Keep it to names of failures and functions that make them.',
  },
  'crash-points.ts': {
    may: [],
    because: 'crash-points.ts is called in the middle of everything. It knows nothing of its callers.',
  },
  'process-identity.ts': {
    may: [],
    because: 'process-identity.ts names processes. It knows nothing of who keeps the names.',
  },
  workflows: {
    may: ['failures.ts', 'policy', 'protocol.ts'],
    types: ['activities'],
    packages: ['@temporalio/workflow', '@temporalio/common'],
    because:
      'Workflow code is replayed, so it only decides. Do the work in an activity and "import type" its functions.',
  },
  tools: {
    may: ['policy', 'protocol.ts', 'store'],
    types: ['agents', 'effects', 'jobs'],
    because: 'A tool knows its input and its own effect. What surrounds the call belongs in effects/ or activities/.',
  },
  store: {
    may: ['crash-points.ts', 'protocol.ts'],
    types: ['policy', 'tools'],
    because: 'store/ keeps and reads records. It runs no tool, asks no model, decides no policy.',
  },
  effects: {
    may: [
      ...['crash-points.ts', 'failures.ts', 'jobs', 'policy', 'process-identity.ts', 'protocol.ts', 'sandbox', 'store'],
      'tools',
    ],
    because: 'effects/ carries out one call. Whoever schedules it is none of its business.',
  },
  jobs: {
    may: ['crash-points.ts', 'policy', 'process-identity.ts', 'protocol.ts', 'sandbox', 'store', 'tools'],
    because: 'jobs/ runs detached processes that outlive workers. Keep it free of what a worker is made of.',
  },
  sandbox: {
    may: ['policy', 'protocol.ts', 'store', 'tools'],
    because: 'sandbox/ only turns a policy into a confined command.',
  },
  model: {
    may: ['failures.ts', 'policy', 'protocol.ts', 'store', 'version.ts'],
    types: ['config.ts', 'tools'],
    because: 'model/ turns a transcript into a request and a response into a reply, nothing else.',
  },
  agents: {
    may: ['policy', 'protocol.ts', 'store', 'tools'],
    because: 'agents/ says what an agent is. Starting one is the business of workflows and activities.',
  },
  snapshot: {
    may: ['home.ts', 'protocol.ts', 'store'],
    because: 'snapshot/ compares folders. It knows no runs.',
  },
  activities: {
    may: [
      ...['agents', 'crash-points.ts', 'effects', 'failures.ts', 'home.ts', 'jobs', 'model', 'policy'],
      ...['process-identity.ts', 'protocol.ts', 'reconcile', 'sandbox', 'snapshot', 'store', 'tools', 'version.ts'],
    ],
    types: ['config.ts'],
    because: 'An activity gets what it needs as a dependency from worker.ts and never reaches back into workflows.',
  },
  client: {
    may: [
      'agents',
      'config.ts',
      'failures.ts',
      'home.ts',
      'policy',
      'protocol.ts',
      'snapshot',
      'store',
      'tools',
      'version.ts',
    ],
    types: ['workflows'],
    because: 'A client only talks to the server and reads files. Name workflows by the constants of protocol.ts.',
  },
  server: {
    may: [
      ...['config.ts', 'config-file.ts', 'failures.ts', 'home.ts', 'jobs', 'model-server-id.ts', 'process-identity.ts'],
      ...['protocol.ts', 'store', 'version.ts'],
    ],
    because: 'server/ starts and stops processes by command line. It loads none of their code.',
  },
  reconcile: {
    may: ['effects', 'home.ts', 'jobs', 'protocol.ts', 'server', 'store'],
    because: 'reconcile/ compares files, processes and the server. Who ends an agent is an activity.',
  },
  simulator: {
    may: ['protocol.ts'],
    because: 'The simulator is another program. It must not share mistakes with the code that it checks.',
  },
  cli: {
    may: [
      ...['agents', 'client', 'client.ts', 'config.ts', 'config-file.ts', 'failures.ts', 'home.ts', 'jobs', 'model'],
      ...['policy', 'process-identity.ts', 'protocol.ts', 'reconcile', 'sandbox', 'server', 'simulator', 'snapshot'],
      ...['model-server-id.ts', 'store', 'tools', 'version.ts'],
    ],
    because: 'The command line goes through client.ts. It runs no activity and no workflow code itself.',
  },
};

/** Packages with a border around them: where alone they may be imported, and where to go instead. */
const PACKAGE_HOMES = [
  { name: '@anthropic-ai/sdk', at: ['model'], instead: 'Only model/ knows the SDK: add what you need there.' },
  {
    name: '@temporalio/client',
    at: ['client', 'client.ts', 'server', 'activities', 'reconcile', 'worker.ts'],
    instead:
      'Only the client, the server, the reconciliation and the fence of the activities talk to Temporal: use client.ts.',
  },
  { name: '@temporalio/workflow', at: ['workflows'], instead: 'It works inside workflows only.' },
  {
    name: '@temporalio/activity',
    at: ['activities'],
    instead: 'Pass the signal or function that you need as an argument.',
  },
  {
    name: '@temporalio/worker',
    at: ['worker.ts', 'bundle.ts'],
    instead: 'Workers are put together in worker.ts alone.',
  },
];

const sourceNames = readdirSync(new URL('./src', import.meta.url));

export default tseslint.config(
  { ignores: ['dist/', 'node_modules/', 'examples/', '.cache/', 'coverage/', 'test/fixtures/', 'test/histories/*/'] },
  {
    files: ['**/*.ts'],
    extends: [tseslint.configs.recommended],
    languageOptions: {
      parserOptions: {
        projectService: { allowDefaultProject: ['*.config.ts'] },
        tsconfigRootDir: import.meta.dirname,
      },
    },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      '@typescript-eslint/await-thenable': 'error',
      '@typescript-eslint/consistent-type-imports': 'error',
      '@typescript-eslint/no-explicit-any': 'error',
      '@typescript-eslint/no-floating-promises': 'error',
      '@typescript-eslint/no-misused-promises': 'error',
      '@typescript-eslint/no-non-null-assertion': 'error',
      '@typescript-eslint/no-unused-vars': [
        'error',
        { argsIgnorePattern: '^_', varsIgnorePattern: '^_', ignoreRestSiblings: true },
      ],
      '@typescript-eslint/only-throw-error': ['error', { allowThrowingUnknown: true }],
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      eqeqeq: 'error',
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: { 'no-restricted-syntax': ['error', defaultExportBan()] },
  },
  ...sourceNames.map(importRules),
  {
    files: ['src/policy/**/*.ts', 'src/workflows/**/*.ts'],
    rules: {
      'no-restricted-globals': ['error', ...['process', 'Buffer', 'fetch', 'require'].map(nodeGlobalBan)],
      'no-restricted-syntax': ['error', defaultExportBan(), dynamicImportBan()],
    },
  },
  {
    files: ['**/*.mjs', '*.js'],
    languageOptions: { ecmaVersion: 2023, sourceType: 'module' },
    rules: {
      eqeqeq: 'error',
      'no-const-assign': 'error',
      'no-dupe-keys': 'error',
      'no-fallthrough': 'error',
      'no-redeclare': 'error',
      'no-self-assign': 'error',
      'no-unreachable': 'error',
      'no-unsafe-finally': 'error',
      'no-unused-vars': ['error', { argsIgnorePattern: '^_' }],
      'no-use-before-define': ['error', { functions: false, variables: false }],
      'no-var': 'error',
      'prefer-const': 'error',
    },
  },
);

function importRules(name) {
  const isFile = name.endsWith('.ts');
  const row = IMPORT_TABLE[name];
  if (!isFile && !row)
    throw new Error(`src/${name}/ has no row in IMPORT_TABLE of eslint.config.js: say what it may import`);
  const patterns = [...(row ? siblingBans(name, isFile, row) : []), ...packageBans(name, row)];
  return {
    files: [isFile ? `src/${name}` : `src/${name}/**/*.ts`],
    rules: { '@typescript-eslint/no-restricted-imports': ['error', { patterns }] },
  };
}

function siblingBans(name, isFile, { may, types = [], because }) {
  const others = sourceNames.filter((other) => other !== name && !may.includes(other));
  const ban = (names, allowTypeImports, message) =>
    names.length === 0 ? [] : [{ regex: siblingRegex(names, isFile), allowTypeImports, message }];
  return [
    ...ban(
      others.filter((other) => types.includes(other)),
      true,
      `Use "import type" here. ${because}`,
    ),
    ...ban(
      others.filter((other) => !types.includes(other)),
      false,
      because,
    ),
  ];
}

/** A file beside the folders starts with `./`; a folder's files have to climb out first. */
function siblingRegex(names, isFile) {
  const ends = names.map((other) => (other.endsWith('.ts') ? `${escaped(other)}$` : `${escaped(other)}/`));
  return `^${isFile ? '\\./' : '(?:\\.\\./)+(?:src/)?'}(?:${ends.join('|')})`;
}

function packageBans(name, row) {
  const homes = PACKAGE_HOMES.filter(({ at }) => !at.includes(name)).map((home) => ({
    regex: `^${escaped(home.name)}(?:/|$)`,
    message: home.instead,
  }));
  if (!row?.packages) return homes;
  const allowed = row.packages.map((one) => `${escaped(one)}(?:/|$)`);
  const others = allowed.length === 0 ? '^[^.]' : `^(?!${allowed.join('|')})[^.]`;
  const builtins = `^(?:node:.*|(?:${builtinModules.map(escaped).join('|')}))$`;
  return [
    { regex: builtins, message: `No Node modules here. ${row.because}` },
    { regex: `(?!${builtins})(?:${others})`, message: `No such package here. ${row.because}` },
  ];
}

function defaultExportBan() {
  return { selector: 'ExportDefaultDeclaration', message: 'Export by name: every importer then uses the same word.' };
}

function dynamicImportBan() {
  return {
    selector: 'ImportExpression',
    message: 'No import() here: it gets round the import table and the bundle check.',
  };
}

function nodeGlobalBan(name) {
  return { name, message: 'Not there in a workflow. Do it in an activity and pass the outcome in.' };
}

function escaped(text) {
  return text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&');
}
