/** A call as a line for the shell, in which `$CLOUD`, `$KEY` and ids are variables. */
import { CALL_SAMPLES, type CallSample } from './call-samples.ts';

export interface Called {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly permission: string;
}

/** undefined: curl is of no use here. */
export function curlExample(called: Called): string | undefined {
  const { method, operationId, permission } = called;
  const sample = CALL_SAMPLES[operationId] ?? {};
  if (sample.instead !== undefined) return undefined;
  const url = `"$CLOUD${pathOf(called, sample)}${sample.query ?? ''}"`;
  const isImplied = method === 'GET' || (method === 'POST' && (sample.body ?? sample.form) !== undefined);
  const lines = [`curl ${isImplied ? '' : `-X ${method} `}${url}`];
  if (permission !== 'public') lines.push('-H "X-API-Key: $KEY"');
  if (sample.body)
    lines.push("-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(sample.body))}`);
  for (const [name, value] of Object.entries(sample.form ?? {})) {
    const field = `${name}=${value}`;
    lines.push(`-F ${/^[\w=@.-]+$/.test(field) ? field : quoted(field)}`);
  }
  if (sample.options) lines.push(sample.options);
  return lines.join(' \\\n  ');
}

/** The variables of the shell that the example needs, besides `CLOUD` and `KEY`. */
export function variablesOf(example: string): string[] {
  return [...new Set([...example.matchAll(/\$([A-Z_]+)/g)].map(([, name]) => String(name)))].filter(
    (name) => name !== 'CLOUD' && name !== 'KEY',
  );
}

/** In single quotes, which variables leave for double ones. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`).replace(/\$[A-Z_]+/g, (variable) => `'"${variable}"'`)}'`;
}

function pathOf({ path }: Called, sample: CallSample): string {
  const segments = path.split('/');
  const filled = segments.map((segment, index) => {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (name === undefined) return segment;
    return sample.path?.[name] ?? `$${variableFor(name, segments[index - 1] ?? '')}`;
  });
  return filled.join('/');
}

/** `{id}` is named after what it is the id of. */
function variableFor(name: string, folder: string): string {
  if (name !== 'id') return name.toUpperCase();
  const noun = folder === 'storage' ? 'object' : folder.replace(/s$/, '');
  return `${noun.replaceAll('-', '_').toUpperCase()}_ID`;
}
