import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, parse } from '../src/csv.js';

test('plain fields are written as they are', () => {
  assert.equal(format([['a', 'b', 1]]), 'a,b,1\n');
});

test('a field with a comma is quoted', () => {
  assert.equal(format([['Smith, Jones']]), '"Smith, Jones"\n');
});

test('a field with several quotes survives a round trip', () => {
  const rows = [['1002', 'says "thanks" and "see you soon"']];
  assert.deepEqual(parse(format(rows)), rows);
});
