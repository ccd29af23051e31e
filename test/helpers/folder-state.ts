import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** Every file below a folder with its content and its inode: whoever replaces a file by an equal one changes it too. */
export function folderState(folder: string): Readonly<Record<string, string>> {
  const names = readdirSync(folder, { recursive: true }).map(String).sort();
  const files = names.filter((name) => statSync(join(folder, name)).isFile());
  return Object.fromEntries(files.map((name) => [name, fileState(join(folder, name))]));
}

function fileState(file: string): string {
  const sha256 = createHash('sha256').update(readFileSync(file)).digest('hex');
  return `${statSync(file).ino} ${sha256}`;
}
