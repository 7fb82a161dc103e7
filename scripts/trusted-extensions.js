/**
 * Lets every tenant create extensions that PostgreSQL reserves for administrators, although they access
 * neither files nor other hosts: changes their control files, only in programs that the set-up unpacked.
 * Plain JavaScript without dependencies, because the set-up calls it on an old Node.
 */
import { existsSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const EXTENSIONS = ['pg_stat_statements', 'vector'];
const TRUSTED = /^\s*trusted\s*=/m;
/** Functions that only an administrator could call then; the creator is the administrator here. */
const FOR_NOBODY = /^REVOKE ALL ON FUNCTION (pg_stat_statements_reset\([^)]*\)) FROM PUBLIC;$/gm;

/**
 * For all PostgreSQL programs in that folder; a repetition changes nothing. Throws without write permission.
 */
export function trustExtensions(folder) {
  for (const directory of existsSync(folder)
    ? readdirSync(folder).flatMap((name) => foldersIn(folder, name))
    : [])
    for (const name of EXTENSIONS) trust(directory, name);
}

/** The folders of extensions: in distributions, and in npm. */
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
  // Last: it records that all is done.
  put(control, `${text.trimEnd()}\ntrusted = true\n`);
}

function put(path, text) {
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}
