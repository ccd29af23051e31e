import { createHmac } from 'node:crypto';

/** Not a secret: it only has to show that a thinking block came back as it was sent. */
const KEY = 'errand-simulator';

export function signThinking(thinking: string): string {
  return `sim1.${mac(`thinking:${thinking}`)}`;
}

/** An opaque block whose data carries its own check. */
export function toRedactedData(thinking: string): string {
  const hidden = Buffer.from(thinking).toString('base64url');
  return `simr1.${hidden}.${mac(`redacted:${hidden}`)}`;
}

export function isOwnRedactedData(data: string): boolean {
  const [version, hidden = '', sum] = data.split('.');
  return version === 'simr1' && sum === mac(`redacted:${hidden}`);
}

function mac(text: string): string {
  return createHmac('sha256', KEY).update(text).digest('base64url');
}
