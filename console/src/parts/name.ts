/** Marks that turn the direction of a text: behind them `exe.gpj` may look like `jpg.exe`. */
const TURNING = /[\u202a-\u202e\u2066-\u2069]/g;

/** A name of a file as it is shown: what would make it look like another one is seen. */
export function sayName(name: string): string {
  return name.replace(TURNING, '\ufffd');
}
