/** One unit of a wildcard pattern. */
export type Token =
  | { readonly kind: 'literal'; readonly char: string }
  | { readonly kind: 'one' }
  | { readonly kind: 'many' }
  | { readonly kind: 'class'; readonly ranges: readonly (readonly [number, number])[]; readonly negated: boolean };

/** `*` is any text, everything else is itself. */
export function starTokens(text: string): Token[] {
  return [...text].map((char) => (char === '*' ? { kind: 'many' } : { kind: 'literal', char }));
}

/**
 * Whole-text match in time pattern × text. No regular expression: the text may come from a model, and a pattern with
 * several stars would make backtracking explode.
 */
export function matchesTokens(tokens: readonly Token[], text: string): boolean {
  const chars = [...text];
  let at = 0;
  let token = 0;
  let retry: { token: number; at: number } | undefined;
  while (at < chars.length) {
    const current = tokens[token];
    if (current?.kind === 'many') {
      retry = { token: ++token, at };
    } else if (current && matchesChar(current, chars[at] ?? '')) {
      token++;
      at++;
    } else if (retry) {
      retry.at++;
      ({ token, at } = retry);
    } else {
      return false;
    }
  }
  return tokens.slice(token).every(({ kind }) => kind === 'many');
}

function matchesChar(token: Token, char: string): boolean {
  switch (token.kind) {
    case 'literal':
      return token.char === char;
    case 'class': {
      const code = char.codePointAt(0) ?? 0;
      return token.ranges.some(([from, to]) => from <= code && code <= to) !== token.negated;
    }
    case 'one':
    case 'many':
      return true;
  }
}
