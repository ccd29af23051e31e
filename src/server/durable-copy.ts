import {
  closeSync,
  constants,
  copyFileSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';

/** Copies files into a new folder that is there whole or not at all. `draft` is where a killed copy leaves its parts. */
export function copyIntoFolder({
  files,
  folder,
  draft,
}: {
  files: readonly string[];
  folder: string;
  draft: string;
}): void {
  rmSync(draft, { recursive: true, force: true });
  mkdirSync(draft, { mode: 0o700 });
  try {
    for (const file of files) copyDurably(file, join(draft, basename(file)));
    sync(draft);
    renameSync(draft, folder);
    sync(dirname(folder));
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

/** Gives the file new content in one step, also in a power cut. */
export function replaceFile(file: string, text: string): void {
  const draft = `${file}.draft`;
  writeFileSync(draft, text, { mode: 0o600 });
  sync(draft);
  renameSync(draft, file);
  sync(dirname(file));
}

function copyDurably(from: string, to: string): void {
  copyFileSync(from, to, constants.COPYFILE_FICLONE);
  sync(to);
}

function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
