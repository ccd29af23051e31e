/** What is for people to read and differs from machine to machine; replay looks at none of it. */
const MACHINE_FIELDS: Readonly<Record<string, unknown>> = { identity: 'recorder', stackTrace: '' };

/** A history fit to be kept: no host, no process, no path of the source tree. */
export function withoutMachine(value: unknown, projectFolder: string): unknown {
  if (Array.isArray(value)) return value.map((item) => withoutMachine(item, projectFolder));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => {
      if (name in MACHINE_FIELDS) return [name, MACHINE_FIELDS[name]];
      if (name === 'data' && typeof item === 'string') return [name, withoutPath(item, projectFolder)];
      return [name, withoutMachine(item, projectFolder)];
    }),
  );
}

/** Payloads are base64 in a history's JSON. */
export function decoded(payload: string): string {
  return Buffer.from(payload, 'base64').toString('utf8');
}

function withoutPath(payload: string, projectFolder: string): string {
  const text = decoded(payload);
  if (!text.includes(projectFolder)) return payload;
  return Buffer.from(text.replaceAll(projectFolder, '/errand')).toString('base64');
}
