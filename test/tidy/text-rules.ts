/** Words that must not remain in any file. */
import { type Finding, findAll, isCode, type SourceFile } from './source-files.ts';

// Classes of one letter prevent findings in this file.
const LEFTOVER = /\b(?:T[O]DO|FI[X]ME|X[X]X|HA[C]K)\b|\b[Nn]ot (?:yet )?implemente[d]\b/g;
const REGISTRY =
  /\b(?:registr[y]|de[b]|securit[y]|pyp[i]|proxy\.golan[g])(?:\.[a-z0-9-]+)+\.(?:com|org|net|io|dev)\b/gi;
const RESOLVED = /"resolve[d]":\s*"https?:/g;
const MACHINE_PATH = /(?<![\w./~$}-])\/(?:work|root|home\/[a-z][\w-]*|Users\/[A-Za-z][\w-]*)\/[\w.]/g;

/** Notes to oneself. */
export function checkLeftovers(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) =>
    findAll(file, LEFTOVER, 'a leftover: do it, or open an issue and remove the note'),
  );
}

/** Addresses of package registries, and paths on one person's machine. */
export function checkMachineTraces(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) => [
    ...findAll(file, REGISTRY, 'names a package registry: which one is the matter of the machine'),
    ...findAll(file, RESOLVED, 'an address in the lock file; see omit-lockfile-registry-resolved'),
    ...findAll(file, MACHINE_PATH, 'an absolute path of one machine'),
  ]);
}

/** Files with catch-all names, and barrels. */
export function checkFileNames(files: readonly SourceFile[]): Finding[] {
  const isDrawer = /(?:^|\/)(?:utils?|helpers?|common|misc)(?:\/|\.)|^server\/(?:.*\/)?index\.ts$/;
  return files
    .filter(({ path }) => isCode(path) && isDrawer.test(path))
    .map(({ path }) => ({ path, line: 1, message: 'name the thing, not the drawer' }));
}

/** The formatter breaks code, but not comments. An address may have any length. */
export function checkComments(files: readonly SourceFile[]): Finding[] {
  const WIDE = /^(?!.*https?:\/\/)(?=.{111}).*?(?:^ *\/?\*|(?:^|\s)\/\/ ).*$/gm;
  return files
    .filter(({ path }) => isCode(path))
    .flatMap((file) => findAll(file, WIDE, 'a comment has at most 110 characters on a line'));
}
