/** Sums orders up by customer, in order of appearance. Amounts are added in cents, so that nothing is lost. */
export function summarize(orders) {
  const cents = new Map();
  for (const { customer, amount } of orders) {
    cents.set(customer, (cents.get(customer) ?? 0) + Math.round(Number(amount) * 100));
  }
  return [...cents].map(([customer, total]) => ({ customer, total: (total / 100).toFixed(2) }));
}

/** Rows with a heading to objects with its names. */
export function toRecords([heading, ...rows]) {
  return rows.map((row) => Object.fromEntries(heading.map((name, index) => [name, row[index]])));
}
