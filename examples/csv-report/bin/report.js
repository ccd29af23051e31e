import { readFileSync } from 'node:fs';
import { format, parse } from '../src/csv.js';
import { toTable } from '../src/html.js';
import { summarize, toRecords } from '../src/summary.js';

const text = readFileSync(new URL('../data/orders.csv', import.meta.url), 'utf8');
const totals = summarize(toRecords(parse(text)));
const rows = [['customer', 'total'], ...totals.map(({ customer, total }) => [customer, total])];
process.stdout.write(process.argv.includes('--html') ? `${toTable(rows)}\n` : format(rows));
