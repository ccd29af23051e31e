/** Makes text safe to be put between tags. */
export function escapeHtml(text) {
  return String(text).replace('&', '&amp;').replace('<', '&lt;').replace('>', '&gt;');
}

/** Writes rows of fields as an HTML table; the first row is the heading. */
export function toTable([heading, ...rows]) {
  const line = (fields, tag) => `<tr>${fields.map((field) => `<${tag}>${escapeHtml(field)}</${tag}>`).join('')}</tr>`;
  return ['<table>', line(heading, 'th'), ...rows.map((row) => line(row, 'td')), '</table>'].join('\n');
}
