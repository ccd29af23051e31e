/** Error texts travel far: into history, terminals, logs. They carry neither keys nor the conversation. */

const LONGEST_QUOTE = 40;
const QUOTED = /(["'`])((?:(?!\1)[^\n]){41,})\1/g;

/** Replaces every secret, and the user and password of any URL. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const named = secrets
    .filter((secret) => secret !== '')
    .reduce((rest, secret) => rest.replaceAll(secret, '***'), text);
  return named.replace(/(\b[a-z][a-z0-9+.-]*:\/\/)[^\s/@]+@/gi, '$1***@');
}

/** One line, with long quotations cut: a server may quote what it was sent. */
export function toNotice(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return line.replace(QUOTED, (_all, mark: string, words: string) => `${mark}${words.slice(0, LONGEST_QUOTE)}…${mark}`);
}
