import { existsSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';

export type Environment = Readonly<Record<string, string | undefined>>;

/** The variables a command may see, picked from the worker's; whatever looks like a secret is left out even so. */
export function allowedEnvironment(env: Environment): Record<string, string> {
  const allowed = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && isAllowed(entry[0]),
  );
  return { ...Object.fromEntries(allowed), PATH: safePath(env['PATH']), GIT_TERMINAL_PROMPT: '0' };
}

/**
 * Variables that lead tools to the user's installations although HOME is a scratch folder: their homes, where nothing
 * else is set and the folder exists.
 */
export function toolchainHomes(env: Environment, userHome: string): Record<string, string> {
  const found = TOOLCHAINS.filter(([name]) => env[name] === undefined)
    .map(([name, folder]) => [name, join(userHome, folder)] as const)
    .filter(([, folder]) => existsSync(folder));
  return Object.fromEntries(found);
}

const PLAIN = [
  ...['HOME', 'LANG', 'LANGUAGE', 'TERM', 'COLORTERM', 'NO_COLOR', 'TZ', 'USER', 'LOGNAME', 'SHELL', 'CI', 'EDITOR'],
  ...['JAVA_HOME', 'JDK_HOME', 'MAVEN_HOME', 'GRADLE_HOME', 'ANDROID_HOME', 'ANDROID_SDK_ROOT', 'SDKMAN_DIR'],
  ...['GOPATH', 'GOROOT', 'GOFLAGS', 'GOPROXY', 'CARGO_HOME', 'RUSTUP_HOME', 'RUSTUP_TOOLCHAIN'],
  ...['NVM_DIR', 'NVM_BIN', 'NODE_ENV', 'NODE_VERSION', 'FNM_DIR', 'VOLTA_HOME', 'BUN_INSTALL', 'DENO_INSTALL'],
  ...['PYENV_ROOT', 'PYENV_VERSION', 'VIRTUAL_ENV', 'CONDA_PREFIX', 'CONDA_DEFAULT_ENV', 'RBENV_ROOT', 'GEM_HOME'],
  ...['ASDF_DIR', 'ASDF_DATA_DIR', 'MISE_DATA_DIR', 'DOTNET_ROOT', 'LD_LIBRARY_PATH', 'PKG_CONFIG_PATH'],
  ...['CC', 'CXX', 'CFLAGS', 'CXXFLAGS', 'LDFLAGS', 'MAKEFLAGS', 'SSL_CERT_FILE', 'SSL_CERT_DIR', 'NIX_SSL_CERT_FILE'],
  ...['NODE_EXTRA_CA_CERTS', 'XDG_DATA_DIRS', 'LOCALE_ARCHIVE'],
];

const TOOLCHAINS: readonly (readonly [string, string])[] = [
  ['RUSTUP_HOME', '.rustup'],
  ['CARGO_HOME', '.cargo'],
  ['PYENV_ROOT', '.pyenv'],
  ['NVM_DIR', '.nvm'],
  ['VOLTA_HOME', '.volta'],
  ['RBENV_ROOT', '.rbenv'],
  ['ASDF_DATA_DIR', '.asdf'],
  ['MISE_DATA_DIR', '.local/share/mise'],
  ['SDKMAN_DIR', '.sdkman'],
  ['GIT_CONFIG_GLOBAL', '.gitconfig'],
];

const SECRET = /^(ANTHROPIC|TEMPORAL|ERRAND|AWS|AZURE|GOOGLE)_|(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;

function isAllowed(name: string): boolean {
  return (PLAIN.includes(name) || name.startsWith('LC_')) && !SECRET.test(name);
}

// A relative entry would let the workspace put its own programs in front.
function safePath(path: string | undefined): string {
  const entries = (path ?? '').split(':').filter((entry) => isAbsolute(entry));
  return entries.length > 0 ? entries.join(':') : '/usr/local/bin:/usr/bin:/bin';
}
