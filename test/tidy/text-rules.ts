/** Words that must not be left in any file. */
import { posix } from 'node:path';
import { type Finding, findAll, isCode, type SourceFile } from './source-files.ts';

// Classes of one letter keep this file from complaining about itself.
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

/** Addresses of package registries and paths of one person's machine. */
export function checkMachineTraces(files: readonly SourceFile[]): Finding[] {
  return files.flatMap((file) => [
    ...findAll(file, REGISTRY, 'names a package registry: which one is the matter of the machine'),
    ...findAll(file, RESOLVED, 'an address in the lock file; see omit-lockfile-registry-resolved'),
    ...findAll(file, MACHINE_PATH, 'an absolute path of one machine'),
  ]);
}

/** File names: kebab-case, no drawer for odds and ends, no barrel. */
export function checkFileNames(files: readonly SourceFile[]): Finding[] {
  return files
    .filter(({ path }) => isCode(path))
    .flatMap(({ path }) => {
      const name = posix.basename(path);
      const say = (message: string) => [{ path, line: 1, message }];
      if (!/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z]+)*\.(?:ts|tsx|js|mjs)$/.test(name))
        return say('file names are kebab-case');
      if (/(?:^|\/)(?:utils?|helpers?|common|misc)(?:\/|\.)/.test(path))
        return say('name the thing, not the drawer');
      if (path.startsWith('server/') && /^index\.ts$/.test(name))
        return say('no barrel files: import from the file that has it');
      return [];
    });
}
