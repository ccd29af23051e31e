import pc from 'picocolors';

/** Colours for a terminal only: a variable such as CI must not put escape codes into a pipe or a file. */
export const colors = pc.createColors(pc.isColorSupported && process.stdout.isTTY === true);
