/** Parses CSV text into rows of fields. Quoted fields may contain commas, line breaks and doubled quotes. */
export function parse(text) {
  const rows = [];
  let row = [];
  let field = '';
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (quoted) {
      if (character !== '"') field += character;
      else if (text[at + 1] === '"') field += text[++at];
      else quoted = false;
    } else if (character === '"') {
      quoted = true;
    } else if (character === ',') {
      row.push(field);
      field = '';
    } else if (character === '\n') {
      rows.push([...row, field]);
      row = [];
      field = '';
    } else {
      field += character;
    }
  }
  if (field !== '' || row.length > 0) rows.push([...row, field]);
  return rows;
}

/** Writes rows of fields as CSV text. */
export function format(rows) {
  return rows.map((row) => row.map(quote).join(',') + '\n').join('');
}

function quote(value) {
  const text = String(value);
  return /[",\n]/.test(text) ? `"${text.replace('"', '""')}"` : text;
}
