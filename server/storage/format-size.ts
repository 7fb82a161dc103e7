const UNITS = ['B', 'KB', 'MB', 'GB', 'TB', 'PB'];

/** From here on two decimals show 1024.00. */
const ROUNDS_UP = 1023.995;

/** `1.50 KB`: 1024-based, two decimals. A value that would round to 1024.00 moves to the next unit. */
export function formatSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (unit < UNITS.length - 1 && value >= ROUNDS_UP) {
    value /= 1024;
    unit++;
  }
  return `${value.toFixed(2)} ${UNITS[unit]}`;
}
