/** Guesses which command was meant. */

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
};
const FARTHEST = 2;

/** The command whose name is most like what was typed, or undefined. */
export function nearest(typed: string, names: readonly string[]): string | undefined {
  const [first = '', second] = typed.split(' ');
  const habit = second === undefined ? HABITS[first] : `${first} ${HABITS[second]}`;
  if (habit !== undefined && names.includes(habit)) return habit;
  // `ssh` alone is `vm ssh`, where no other command has that second word.
  const tails = names.filter((name) => name.endsWith(` ${habit ?? typed}`));
  if (tails.length === 1) return tails[0];
  const [best] = names
    .map((name) => ({ name, distance: distanceOf(typed, name) }))
    .filter(({ name, distance }) => distance <= FARTHEST && distance <= name.length / 2)
    .sort((a, b) => a.distance - b.distance);
  return best?.name;
}

/** How many letters must be changed, left out or put in. */
function distanceOf(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, at) => at);
  for (const [at, letter] of [...from].entries()) {
    const next = [at + 1];
    for (let i = 0; i < to.length; i++) {
      const changed = (row[i] ?? 0) + (to[i] === letter ? 0 : 1);
      next.push(Math.min(changed, (row[i + 1] ?? 0) + 1, (next[i] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
