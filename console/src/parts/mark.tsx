/** A small mark that tells engines and images apart in lists: two letters on a colour of their own. */
import classes from './parts.module.css';

/** Dark enough for white letters. */
const COLOURS = ['#0f5f5c', '#2f5d8a', '#7a4a00', '#8a3b5c', '#3f6b2a', '#5b4a91', '#a8322a', '#4d5a66'];

/** `name`: as it is shown beside the mark. The same name has the same mark everywhere. */
export function Mark({ name }: { name: string }) {
  const letters = name.replace(/[^\p{L}\p{N}]/gu, '').slice(0, 2);
  return (
    <span
      className={classes.mark}
      // Not text of the page: it would be read aloud and copied with the name.
      data-letters={letters.slice(0, 1).toUpperCase() + letters.slice(1).toLowerCase()}
      style={{ background: COLOURS[colourOf(name)] }}
      aria-hidden
    />
  );
}

/** By the first word, so that versions of one image look alike. */
function colourOf(name: string): number {
  const [word = ''] = name.split(/[\s-]/);
  let sum = 0;
  for (const letter of word) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) % 9973;
  return sum % COLOURS.length;
}
