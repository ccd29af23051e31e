import assert from 'node:assert/strict';
import { test } from 'node:test';
import { escapeHtml, toTable } from '../src/html.js';

test('special characters are escaped', () => {
  assert.equal(escapeHtml('<b> & co'), '&lt;b&gt; &amp; co');
});

test('the first row is the heading', () => {
  assert.match(toTable([['name'], ['Ada']]), /<th>name<\/th>[\s\S]*<td>Ada<\/td>/);
});
