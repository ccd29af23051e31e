import { describe, expect, it } from 'vitest';
import type { Action, Layer } from '../../src/policy/policy.ts';
import { checkLayers, layerOpinion, parseLayer, parseRule, RuleError, withHome } from '../../src/policy/rules.ts';

function layer(rules: Partial<Layer>): Layer {
  return { owner: 'user', base: '/w', deny: [], ask: [], allow: [], ...rules };
}

function bash(command: string): Action {
  return { tool: 'bash', access: 'execute', command };
}

function opinion(rules: Partial<Layer>, action: Action): string {
  return layerOpinion(parseLayer(layer(rules)), action)?.verdict ?? 'abstains';
}

describe('an allow rule for a command', () => {
  const allow = ['Bash(git status*)'];

  it.each([
    'git status',
    'git status --short',
    'git   status\t-s',
    'git status "a b"',
    "'git' status",
    'git status 2>&1',
    'git status > /dev/null',
    'NODE_ENV=test git status',
    'timeout 60 git status',
    'git status && git status -s | git status',
    'git status # rm x',
    'git status \\\n -s',
  ])('admits the plain command %j', (command) => {
    expect(opinion({ allow }, bash(command))).toBe('allow');
  });

  it.each([
    'git status; rm x',
    'git status && rm x',
    'git status || rm x',
    'git status | tee f',
    'git status & rm x',
    'git status\nrm x',
    'git status |& tee f',
    '(git status)',
    '(git status; rm x)',
    '{ git status; }',
    'git status <<EOF\nx\nEOF',
    'git status <<< x',
    'git status $(touch x)',
    'git status "$(touch x)"',
    'git status `touch x`',
    'git status "`touch x`"',
    'git status <(touch x)',
    'git status >(touch x)',
    'git status > f',
    'git status >> f',
    'git status 2> f',
    'git status &> f',
    'git status < f',
    'git status ${x:-$(touch x)}',
    'git status $x',
    'git status {a,b}',
    "git status $'\\n'",
    'git "status; rm x"',
    "'git status' x",
    '"git status"',
    'g\\it\\ status',
    'PATH=/tmp git status',
    'LD_PRELOAD=x git status',
    'sudo git status',
    'env git status',
    'xargs git status',
    'if git status; then rm x; fi',
    '! git status',
    'git status "unterminated',
    "git status 'unterminated",
    'git status $(unterminated',
    'git status\0',
    `git status ${'x'.repeat(20_000)}`,
    '',
    ' ',
    '# git status',
  ])('says nothing about %j', (command) => {
    expect(opinion({ allow }, bash(command))).toBe('abstains');
  });

  it('may be met part by part by several rules', () => {
    const rules = { allow: ['Bash(npm test:*)', 'Bash(npm run lint)'] };
    expect(opinion(rules, bash('npm run lint && npm test -- a'))).toBe('allow');
    expect(opinion(rules, bash('npm run lint && npm publish'))).toBe('abstains');
  });
});

describe('a command specifier', () => {
  it.each([
    ['Bash(npm test)', 'npm test', 'allow'],
    ['Bash(npm test)', 'npm test x', 'abstains'],
    ['Bash(npm test:*)', 'npm test', 'allow'],
    ['Bash(npm test:*)', 'npm test -- x', 'allow'],
    ['Bash(npm test:*)', 'npm testing', 'abstains'],
    ['Bash(npm test *)', 'npm test', 'allow'],
    ['Bash(npm * --dry)', 'npm publish --dry', 'allow'],
    ['Bash(npm * --dry)', 'npm publish', 'abstains'],
    ['Bash(git commit -m "a b")', "git commit -m 'a b'", 'allow'],
    ['Bash(*)', 'anything', 'allow'],
    ['bash', 'anything', 'allow'],
    ['*', 'anything', 'allow'],
  ])('%s on %j: %s', (rule, command, verdict) => {
    expect(opinion({ allow: [rule] }, bash(command))).toBe(verdict);
  });

  it('with many stars is matched without trying all the ways they could match', () => {
    const rule = `Bash(${'*a'.repeat(30)}*b)`;
    expect(opinion({ deny: [rule] }, bash('a'.repeat(9_000)))).toBe('abstains');
  });
});

describe('a deny rule for a command', () => {
  it.each([
    'rm x',
    'rm',
    'ls; rm x',
    'ls && rm x',
    'ls | rm x',
    'ls\nrm x',
    '(rm x)',
    '{ rm x; }',
    'echo $(rm x)',
    'echo `rm x`',
    'echo "$(rm x)"',
    'echo ${x:-$(rm x)}',
    'cat <(rm x)',
    'cat <<EOF\n$(rm x)\nEOF',
    'bash <<EOF\nrm x\nEOF',
    'bash -c "rm x"',
    "sh -lc 'ls; rm x'",
    'eval "rm x"',
    'A=1 rm x',
    'timeout -k 5 10s rm x',
    'nice -n 5 rm x',
    'nohup rm x &',
    'env -i A=1 rm x',
    'command rm x',
    'xargs -n 1 rm x',
    'sudo -u root rm x',
    'sudo env nice rm x',
    '$SUDO rm x',
    '"$SUDO" rm x',
    'find . -exec rm {} +',
    '/bin/rm x',
    "r'm' x",
    'r\\m x',
    "$'\\x72m' x",
    'rm > f x',
    'for f in *; do rm $f; done',
    'if true; then rm x; fi',
    'f() { rm x; }; f',
    'case x in a) rm x;; esac',
    'rm "unterminated',
    'echo $(case x in a) rm x;; esac)',
    `ls ${'x'.repeat(20_000)}`,
  ])('fires on %j', (command) => {
    expect(opinion({ deny: ['Bash(rm:*)'] }, bash(command))).toBe('deny');
  });

  it.each(['ls', 'echo rm', 'npm rm-something', 'git rm x', 'rmdir x', 'cat <<EOF\nrm x\nEOF', 'echo "rm x"'])(
    'does not fire on %j',
    (command) => {
      expect(opinion({ deny: ['Bash(rm:*)'] }, bash(command))).toBe('abstains');
    },
  );
});

describe('a path rule', () => {
  it.each([
    ['Read(//etc/passwd)', '/etc/passwd', true],
    ['Read(//etc)', '/etc/ssl/key', true],
    ['Read(/secrets)', '/w/secrets/a', true],
    ['Read(/secrets)', '/w/src/secrets/a', false],
    ['Read(./secrets/**)', '/w/secrets/a/b', true],
    ['Read(./secrets/**)', '/w/secrets', false],
    ['Read(src/*.ts)', '/w/src/a.ts', true],
    ['Read(src/*.ts)', '/w/src/sub/a.ts', false],
    ['Read(src/**/*.ts)', '/w/src/sub/deep/a.ts', true],
    ['Read(src/**/*.ts)', '/w/src/a.ts', true],
    ['Read(.env)', '/w/a/b/.env', true],
    ['Read(.env)', '/elsewhere/.env', true],
    ['Read(**/.env)', '/w/.env', true],
    ['Read(**/.env)', '/w/.envrc', false],
    ['Read(.env*)', '/w/.env.local', true],
    ['Read(secrets/)', '/w/a/secrets/b', true],
    ['Read(*.{pem,key})', '/w/x.key', true],
    ['Read(*.{pem,key})', '/w/x.kex', false],
    ['Read(./app/(auth)/**)', '/w/app/(auth)/page.tsx', true],
    ['Read([a-c]?.txt)', '/w/bx.txt', true],
    ['Read([!a-c]?.txt)', '/w/bx.txt', false],
    ['Read(\\[slug\\])', '/w/[slug]/x', true],
    ['Read(*)', '/w/anything', true],
    ['Read', '/w/anything', true],
  ])('%s covers %s: %s', (rule, path, covers) => {
    expect(opinion({ deny: [rule] }, { tool: 'read', access: 'read', path })).toBe(covers ? 'deny' : 'abstains');
  });

  it.each(['read', 'write', 'edit', 'grep', 'glob'])('against reading also closes the path to %s', (tool) => {
    const access = tool === 'write' || tool === 'edit' ? 'write' : 'read';
    expect(opinion({ deny: ['Read(**/.env)'] }, { tool, access, path: '/w/a/.env' })).toBe('deny');
    expect(opinion({ deny: ['Read(**/.env)'] }, { tool, access, path: '/w/a/.envy' })).toBe('abstains');
  });

  it.each([
    'cat .env',
    'cat a/.env',
    'cp ./.env x',
    'tar --file=.env',
    'cat < .env',
    'sh -c "cat .env"',
    'curl -d @.env x',
  ])('against reading also denies a command that names the path: %s', (command) => {
    expect(opinion({ deny: ['Read(**/.env)'] }, bash(command))).toBe('deny');
  });

  it('against editing denies a redirect to the path, not reading it', () => {
    expect(opinion({ deny: ['Edit(./dist/**)'] }, bash('echo x > dist/a'))).toBe('deny');
    expect(opinion({ deny: ['Edit(./dist/**)'] }, bash('cat dist/a'))).toBe('abstains');
  });

  it('closes a path to edit and write alike, while a bare name takes away one tool', () => {
    const write = (tool: string): Action => ({ tool, access: 'write', path: '/w/dist/a' });
    expect(opinion({ deny: ['Write(./dist/**)'] }, write('edit'))).toBe('deny');
    expect(opinion({ deny: ['Edit(./dist/**)'] }, write('write'))).toBe('deny');
    expect(opinion({ deny: ['Write'] }, write('edit'))).toBe('abstains');
  });

  it('that allows reading allows searching, but no change', () => {
    const allow = ['Read(./src/**)'];
    expect(opinion({ allow }, { tool: 'grep', access: 'read', path: '/w/src/a' })).toBe('allow');
    expect(opinion({ allow }, { tool: 'edit', access: 'write', path: '/w/src/a' })).toBe('abstains');
  });

  it('takes its home folder at the border', () => {
    expect(withHome('Read(~/.ssh/**)', '/home/$me')).toBe('Read(//home/$me/.ssh/**)');
    expect(withHome('Bash(ls ~/x)', '/home/me')).toBe('Bash(ls ~/x)');
  });
});

describe('a rule for agent types', () => {
  it('knows them without regard to case and separators', () => {
    const spawn = (agentType: string): Action => ({ tool: 'task', access: 'spawn', agentType });
    expect(opinion({ deny: ['Task(General-Purpose)'] }, spawn('general_purpose'))).toBe('deny');
    expect(opinion({ deny: ['Agent(gen*)'] }, spawn('general-purpose'))).toBe('deny');
    expect(opinion({ deny: ['Task(explore)'] }, spawn('plan'))).toBe('abstains');
  });
});

describe('a malformed rule', () => {
  it.each([
    ['Raed(x)', 'there is no tool "Raed"; valid are Bash, Edit, Glob'],
    ['Bash(npm test', 'a rule is Tool or Tool(specifier)'],
    ['', 'a rule is Tool or Tool(specifier)'],
    ['Read()', 'there is nothing between the brackets; write Read for every use'],
    ['Read(~/x)', 'must be made absolute'],
    ['Read(!x)', 'a leading "!" is not supported'],
    ['Read(../x)', '".." is not supported'],
    ['Read([a)', 'a "[" has no "]"'],
    ['Read(//)', 'names no path'],
    ['TodoWrite(x)', 'TodoWrite takes no specifier'],
    ['*(x)', '* takes no specifier'],
  ])('%j is refused', (text, reason) => {
    expect(() => parseRule(text, layer({}))).toThrow(RuleError);
    expect(() => parseRule(text, layer({}))).toThrow(reason);
  });

  it('is named with its layer and stops the check of the whole set', () => {
    const bad = layer({ owner: 'type:fixer', ask: ['Bsh(x)'] });
    expect(() => checkLayers([layer({}), bad])).toThrow('Rule "Bsh(x)" of type:fixer cannot be read');
  });

  it('is a relative path in a layer without a base', () => {
    const { base: _, ...rootless } = layer({ deny: ['Read(./x)'] });
    expect(() => parseLayer(rootless)).toThrow('needs a layer with a base folder');
  });
});
