/** Guesses the intended command, option or resource. */
import { slipsBetween } from '../libs/near-names/index.ts';

/** Verbs of other clouds' clients. */
const HABITS: Readonly<Record<string, string>> = {
  list: 'ls',
  delete: 'rm',
  destroy: 'rm',
  remove: 'rm',
  get: 'show',
  describe: 'show',
  info: 'show',
  reboot: 'restart',
  exec: 'ssh',
  rename: 'change',
  resize: 'change',
  ip: 'show',
  password: 'url',
  credentials: 'url',
  psql: 'connect',
  upload: 'cp',
  download: 'cp',
  put: 'cp',
  buckets: 'ls',
  objects: 'ls',
  copy: 'cp',
  move: 'mv',
  dir: 'ls',
  vms: 'vm ls',
  machines: 'vm ls',
  instances: 'vm ls',
  databases: 'db ls',
  dbs: 'db ls',
  keys: 'key ls',
  config: 'profile ls',
  configure: 'login',
  auth: 'login',
  images: 'vm images',
  image: 'vm images',
  types: 'vm types',
  logs: 'vm logs',
  query: 'db connect',
  sql: 'db connect',
  'bucket ls': 'ls',
  'bucket list': 'ls',
  'bucket create': 'mb',
  'db query': 'db connect',
  'db exec': 'db connect',
};
const FILE_VERBS: Readonly<Record<string, string>> = {
  get: 'cp',
  fetch: 'cp',
  copy: 'cp',
  move: 'mv',
  del: 'rm',
  erase: 'rm',
  type: 'cat',
  dir: 'ls',
  make: 'mb',
  create: 'mb',
};
/** Groups of file commands in other clients. */
const FILE_GROUPS = ['s3', 's3api', 'object', 'objects', 'storage'];
const FARTHEST = 2;

/** The command name most similar to the typed one, or undefined. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  if (names.includes(typed)) return typed;
  const [first = '', second] = typed.split(' ');
  // `get s3://photos/a.jpg` is about files, though `get vm` is not.
  if (second?.startsWith('s3:') === true) return nearest(FILE_VERBS[first] ?? first, names);
  if (second !== undefined && FILE_GROUPS.includes(first)) return nearest(second, names);
  const habit = HABITS[typed] ?? (second === undefined ? undefined : `${first} ${HABITS[second]}`);
  if (habit !== undefined && names.includes(habit)) return habit;
  // `ssh` is completed to `vm ssh` if no other command has that second word.
  const tails = names.filter((name) => name.endsWith(` ${habit ?? typed}`));
  if (tails.length === 1) return tails[0];
  return closest(typed, names);
}

/** The name within one or two typos, or undefined. */
function closest(typed: string, names: readonly string[]): string | undefined {
  // `--size` for `--size-limit`.
  const longer = names.filter((name) => typed.length > FARTHEST + 2 && name.startsWith(`${typed}-`));
  if (longer.length === 1) return longer[0];
  const [best] = names
    .map((name) => ({ name, distance: slipsBetween(typed, name) }))
    .filter(
      ({ name, distance }) => distance <= FARTHEST && distance <= Math.min(name.length, typed.length) / 2,
    )
    .sort((a, b) => a.distance - b.distance);
  return best?.name;
}

/** `; did you mean web?`, or nothing. */
export function meant(typed: string, names: readonly string[]): string {
  const name = closest(typed, names);
  return name === undefined ? '' : `; did you mean ${name}?`;
}
