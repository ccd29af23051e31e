import { existsSync, realpathSync } from 'node:fs';
import { sep } from 'node:path';

/** Flags that make the walls; the probe tries exactly these. */
export function isolation(network: boolean): readonly string[] {
  return [
    '--unshare-all',
    ...(network ? ['--share-net'] : []),
    '--die-with-parent',
    '--new-session',
    ...['--cap-drop', 'ALL'],
    ...['--ro-bind', '/', '/'],
    ...['--dev', '/dev', '--proc', '/proc'],
    ...['--tmpfs', '/run'],
    ...runtimeFiles(network),
  ];
}

export function isWithin(path: string, folder: string): boolean {
  return folder === sep || path === folder || path.startsWith(folder + sep);
}

// /run is hidden for the sockets in it (Docker's among them); these few are programs and name servers.
function runtimeFiles(network: boolean): readonly string[] {
  const resolver = network && existsSync('/etc/resolv.conf') ? [realpathSync('/etc/resolv.conf')] : [];
  const wanted = [...resolver.filter((path) => isWithin(path, '/run')), '/run/current-system'];
  return wanted.filter((path) => existsSync(path)).flatMap((path) => ['--ro-bind', path, path]);
}
