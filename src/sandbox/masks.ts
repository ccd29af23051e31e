import { join } from 'node:path';

/** Files and folders that hold secrets or speak for the user; no sandboxed command sees into them. */
export function secretPaths(userHome: string): readonly string[] {
  return [...HOME_SECRETS.map((path) => join(userHome, path)), ...SYSTEM_SECRETS];
}

const HOME_SECRETS = [
  ...['.ssh', '.gnupg', '.aws', '.azure', '.kube', '.docker', '.oci', '.password-store', '.vault-token', '.netrc'],
  ...['.config/gcloud', '.config/gh', '.config/glab-cli', '.config/hub', '.config/op', '.config/doctl', '.config/sops'],
  ...['.config/rclone', '.config/anthropic', '.config/temporalio', '.config/containers/auth.json', '.config/pip'],
  ...['.git-credentials', '.config/git/credentials', '.npmrc', '.yarnrc', '.yarnrc.yml', '.pypirc', '.pip/pip.conf'],
  ...['.cargo/credentials', '.cargo/credentials.toml', '.gem/credentials', '.m2/settings.xml', '.terraform.d'],
  ...['.gradle/gradle.properties', '.nuget/NuGet/NuGet.Config', '.pgpass', '.my.cnf', '.s3cfg', '.boto', '.kaggle'],
  ...['.cache/huggingface/token', '.huggingface', '.wrangler', '.fly', '.heroku', '.terraformrc', '.databrickscfg'],
  ...['.claude', '.claude.json', '.codex', '.gemini', '.anthropic', '.config/claude', '.config/github-copilot'],
  ...[
    '.mozilla',
    '.thunderbird',
    '.config/google-chrome',
    '.config/chromium',
    '.config/BraveSoftware',
    '.config/vivaldi',
  ],
  ...['.config/microsoft-edge', '.config/Bitwarden', '.config/1Password', '.config/Signal', '.config/Slack'],
  ...['.local/share/keyrings', '.local/share/kwalletd', '.pki', '.bash_history', '.zsh_history', '.python_history'],
  ...['.node_repl_history', '.psql_history', '.mysql_history', '.local/share/fish/fish_history'],
];

// For a worker that runs as root: inside, files of root are still its own.
const SYSTEM_SECRETS = [
  '/etc/shadow',
  '/etc/gshadow',
  '/etc/sudoers',
  '/etc/sudoers.d',
  '/etc/ssh',
  '/etc/ssl/private',
].concat(['/etc/kubernetes', '/var/lib/docker', '/var/lib/containerd', '/var/lib/kubelet', '/var/lib/rancher']);
