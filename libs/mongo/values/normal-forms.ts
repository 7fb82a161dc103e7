/**
 * Unicode's normal forms, in bounded time. Marks that follow one letter are sorted, which takes the
 * square of their number: so a joiner is inserted after each thirty of them, as in the Stream-Safe
 * Text Format of UAX #15.
 */

const MANY_MARKS = /(\p{M}{30})(?=\p{M})/gu;
const JOINER = '\u034f';

export function normalForm(text: string, form: 'NFC' | 'NFD' | 'NFKD'): string {
  return text.replace(MANY_MARKS, `$1${JOINER}`).normalize(form);
}
