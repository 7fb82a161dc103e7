/** Guesses which command, option or resource was meant. */

/** Words of other clouds' clients. */
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
  psql: 'connect',
  upload: 'cp',
  download: 'cp',
  put: 'cp',
  buckets: 'ls',
  objects: 'ls',
  vms: 'vm ls',
  machines: 'vm ls',
  instances: 'vm ls',
  databases: 'db ls',
  dbs: 'db ls',
  keys: 'key ls',
  config: 'profile ls',
  configure: 'login',
  auth: 'login',
};
/** Groups in which other clients have their verbs for files. */
const FILE_GROUPS = ['s3', 's3api', 'object', 'objects', 'storage'];
const FARTHEST = 2;

/** The command whose name is most like what was typed, or undefined. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  const [first = '', second] = typed.split(' ');
  if (second !== undefined && FILE_GROUPS.includes(first)) return nearest(second, names);
  const habit = second === undefined ? HABITS[first] : `${first} ${HABITS[second]}`;
  if (habit !== undefined && names.includes(habit)) return habit;
  // `ssh` alone is `vm ssh`, where no other command has that second word.
  const tails = names.filter((name) => name.endsWith(` ${habit ?? typed}`));
  if (tails.length === 1) return tails[0];
  return closest(typed, names);
}

/** The name that is a slip or two from what was typed, or undefined. */
function closest(typed: string, names: readonly string[]): string | undefined {
  const [best] = names
    .map((name) => ({ name, distance: distanceOf(typed, name) }))
    .filter(({ name, distance }) => distance <= FARTHEST && distance <= name.length / 2)
    .sort((a, b) => a.distance - b.distance);
  return best?.name;
}

/** `; did you mean web?`, or nothing. */
export function meant(typed: string, names: readonly string[]): string {
  const name = closest(typed, names);
  return name === undefined ? '' : `; did you mean ${name}?`;
}

/** How many letters must be changed, left out, put in, or swapped with their neighbour. */
function distanceOf(from: string, to: string): number {
  let before: number[] = [];
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (let at = 0; at < from.length; at++) {
    const next = [at + 1];
    for (let i = 0; i < to.length; i++) {
      const changed = (row[i] ?? 0) + (to[i] === from[at] ? 0 : 1);
      const isSwapped = i > 0 && at > 0 && to[i] === from[at - 1] && to[i - 1] === from[at];
      const swapped = isSwapped ? (before[i - 1] ?? 0) + 1 : changed;
      next.push(Math.min(changed, swapped, (row[i + 1] ?? 0) + 1, (next[i] ?? 0) + 1));
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? 0;
}
