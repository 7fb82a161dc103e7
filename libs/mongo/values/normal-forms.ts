/**
 * Unicode's normal forms, in time. Marks that follow one letter are sorted, which takes the square of their
 * number: so, as UAX #15 has it for its Stream-Safe Text Format, a joiner comes after each thirty of them.
 */

const MANY_MARKS = /(\p{M}{30})(?=\p{M})/gu;
const JOINER = '\u034f';

export function normalForm(text: string, form: 'NFC' | 'NFD' | 'NFKD'): string {
  return text.replace(MANY_MARKS, `$1${JOINER}`).normalize(form);
}
