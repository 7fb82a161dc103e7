/** Names that people give to machines, and the host name made of one. */

const MAX_CHARACTERS = 128;

/** What is wrong with a name (already trimmed), or undefined. */
export function vmNameProblem(name: string): string | undefined {
  const length = [...name].length;
  if (!name.isWellFormed()) return 'must be well-formed Unicode';
  if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(name)) return 'must have no control characters or line breaks';
  // Characters that show nothing may join others, but are no name by themselves.
  if (!/[^\p{C}\p{Z}\p{M}]/u.test(name)) return 'must have a visible character';
  return length <= MAX_CHARACTERS ? undefined : `must have at most ${MAX_CHARACTERS} characters`;
}

/** 1 to 63 of `a-z0-9-`, beginning and ending with a letter or digit; of a name without any, the id. */
export function hostnameOf(name: string, vmId: string): string {
  const words = name
    .normalize('NFKD')
    .toLowerCase()
    .replace(/\p{M}/gu, '')
    .replace(/[^a-z0-9]+/g, '-');
  const hostname = words.slice(0, 64).replace(/^-+/, '').slice(0, 63).replace(/-+$/, '');
  return hostname === '' ? vmId : hostname;
}
