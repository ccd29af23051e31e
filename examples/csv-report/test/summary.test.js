import assert from 'node:assert/strict';
import { test } from 'node:test';
import { summarize, toRecords } from '../src/summary.js';

test('amounts are summed up by customer', () => {
  const orders = toRecords([
    ['customer', 'amount'],
    ['Ada', '0.10'],
    ['Miller', '5'],
    ['Ada', '0.20'],
  ]);
  assert.deepEqual(summarize(orders), [
    { customer: 'Ada', total: '0.30' },
    { customer: 'Miller', total: '5.00' },
  ]);
});
