/** Extensions that every tenant may create: those that PostgreSQL trusts, of the programs there are. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

const TRUSTED = /^\s*trusted\s*=\s*(?:true|on|yes|1)\s*(?:#.*)?$/m;
const known = new Map<string, readonly string[]>();

/** By the folder of the programs: as distributions have it, as it is built by default, as Fedora has it. */
export function trustedExtensions(bin: string, major: number): readonly string[] {
  const places = [
    `../../../../share/postgresql/${major}`,
    '../share',
    '../share/postgresql',
    '../share/pgsql',
  ];
  const found =
    known.get(bin) ?? places.map((place) => trustedIn(join(bin, place, 'extension'))).find(hasSome);
  if (found === undefined) return [];
  known.set(bin, found);
  return found;
}

function trustedIn(folder: string): string[] {
  const controls = globSync('*.control', { cwd: folder }).sort();
  const trusted = controls.filter((name) => TRUSTED.test(readFileSync(join(folder, name), 'utf8')));
  return trusted.map((name) => basename(name, '.control'));
}

const hasSome = (names: readonly string[]) => names.length > 0;
