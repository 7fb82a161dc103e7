/** Length in bytes of a BSON value, by its type number. */

/** Types whose values have that many bytes. */
export const FIXED_BYTES: Readonly<Record<number, number>> = {
  1: 8,
  6: 0,
  7: 12,
  8: 1,
  9: 8,
  10: 0,
  16: 4,
  17: 8,
  18: 8,
  19: 16,
  127: 0,
  255: 0,
};
/** Types with a length prefix, and the bytes that it does not include. */
export const BEYOND_LENGTH: Readonly<Record<number, number>> = {
  2: 4,
  3: 0,
  4: 0,
  5: 5,
  12: 16,
  13: 4,
  14: 4,
  15: 0,
};
/** Two texts, each terminated by NUL. */
export const REGEX = 11;
