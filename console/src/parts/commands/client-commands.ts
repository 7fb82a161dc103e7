/** Commands of the client `cloudlet`: for the current page, and for a call of the API. */
import { shellWord } from '../say.ts';

/** First part of the path → the command without and with a second part. */
const PAGES: Readonly<Record<string, readonly [all: string, one: string]>> = {
  '': ['whoami', 'whoami'],
  storage: ['ls', 'ls'],
  machines: ['vm ls', 'vm show'],
  databases: ['db ls', 'db show'],
  billing: ['usage', 'usage'],
  account: ['key ls', 'key ls'],
  webhooks: ['webhook ls', 'webhook ls'],
  recovery: ['recovery ls', 'recovery ls'],
  administration: ['api adminListAccounts', 'api adminListAccounts'],
};

/** `s3://photos/trip/`, quoted for a shell. */
export function placeWord(bucket: string, name = ''): string {
  return shellWord(`s3://${bucket}/${name}`);
}

/** The client command for the page at this URL; undefined: none. */
export function commandOfPage(path: string, prefix: string | undefined): string | undefined {
  const [, area = '', encoded = ''] = path.split('/');
  const commands = PAGES[area];
  if (commands === undefined || encoded === 'new') return undefined;
  const one = decodeURIComponent(encoded);
  if (area === 'storage' && one === 's3') return 'cloudlet key ls';
  if (one === '') return `cloudlet ${commands[0]}`;
  const word = area === 'storage' ? placeWord(one, prefix) : shellWord(one);
  return `cloudlet ${commands[1]} ${word}`;
}

/** The parameters of an operation, like the SDK's CallShape. */
interface Shape {
  readonly method: string;
  readonly path: string;
  readonly body: 'json' | 'form' | null;
  readonly query: boolean;
}

/** Operations with their own command; `args` as in the SDK's method. */
const COMMANDS: Readonly<Record<string, (args: readonly unknown[]) => string | undefined>> = {
  createBucket: ([body]) => {
    const { name, ...settings } = body as { name: string };
    return Object.values(settings).some((value) => value !== undefined && value !== false)
      ? undefined
      : `mb ${shellWord(name)}`;
  },
  startVm: ([id]) => `vm start ${shellWord(String(id))}`,
  deleteVm: ([id]) => `vm rm ${shellWord(String(id))}`,
  deleteDatabase: ([id]) => `db rm ${shellWord(String(id))}`,
  deleteAccessKey: ([id]) => `key rm ${shellWord(String(id))}`,
};

/** The command for a call; undefined for forms with files, which the client sends differently. */
export function commandOfCall(operation: string, shape: Shape, args: readonly unknown[]): string | undefined {
  const own = COMMANDS[operation]?.(args);
  if (own !== undefined) return `cloudlet ${own}`;
  if (shape.body === 'form') return undefined;
  const rest = [...args];
  const ids = rest.splice(0, shape.path.split('{').length - 1).map(String);
  const body = shape.body === null ? undefined : rest.shift();
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries((shape.query && rest.shift()) || {}))
    if (value !== undefined) search.set(name, String(value));
  let next = 0;
  const path = shape.path.replace(/\{\w+\}/g, () => encodeURIComponent(ids[next++] ?? ''));
  // A query needs the path; without one, the operation name and ids suffice.
  const named = search.size === 0 ? [operation, ...ids] : [shape.method, `${path}?${search}`];
  const words = named.map(shellWord).join(' ');
  return `cloudlet api ${words}${body === undefined ? '' : ` -d ${shellWord(JSON.stringify(body))}`}`;
}
