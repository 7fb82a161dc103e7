/**
 * Has every tenant create extensions that PostgreSQL leaves to administrators, though they reach neither
 * files nor other hosts: their control files say so, in programs that the set-up unpacked and nowhere else.
 * Plain JavaScript without dependencies, because the set-up calls it on an old Node.
 */
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const EXTENSIONS = ['pg_stat_statements', 'vector'];
const TRUSTED = /^\s*trusted\s*=/m;
/** What only an administrator could call then; who created it is its administrator here. */
const FOR_NOBODY = /^REVOKE ALL ON FUNCTION (pg_stat_statements_reset\([^)]*\)) FROM PUBLIC;$/gm;

/** In all programs of PostgreSQL in that folder; again changes nothing. Throws when it may not write. */
export function trustExtensions(folder) {
  for (const directory of existsSync(folder)
    ? readdirSync(folder).flatMap((name) => foldersIn(folder, name))
    : [])
    for (const name of EXTENSIONS) trust(directory, name);
}

/** Where extensions are: as distributions have it, and as npm has it. */
function foldersIn(folder, name) {
  const [, major] = /^postgresql-(\d+)/.exec(name) || [];
  return [`usr/share/postgresql/${major}`, `usr/lib/postgresql/${major}/share/postgresql`]
    .map((share) => join(folder, name, share, 'extension'))
    .filter(existsSync);
}

function trust(directory, name) {
  const control = join(directory, `${name}.control`);
  if (!existsSync(control)) return;
  const text = readFileSync(control, 'utf8');
  if (TRUSTED.test(text)) return;
  for (const script of readdirSync(directory).filter((each) => each.startsWith(`${name}--`))) {
    const sql = readFileSync(join(directory, script), 'utf8');
    const given = sql.replace(FOR_NOBODY, '$&\nGRANT EXECUTE ON FUNCTION $1 TO @extowner@;');
    if (given !== sql && !sql.includes('@extowner@')) put(join(directory, script), given);
  }
  // Last: it says that all is done.
  put(control, `${text.trimEnd()}\ntrusted = true\n`);
}

function put(path, text) {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
