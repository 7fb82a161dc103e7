/** The database engines. A new one is a folder beside these, and an entry here. */
import { ENGINES, type EngineName } from '../../databases/engine.ts';
import { MONGODB } from './mongodb/about.ts';
import { MYSQL } from './mysql/about.ts';
import { POSTGRESQL } from './postgresql/about.ts';
import type { EngineAbout } from './shared/engine-about.ts';
import { SQLITE } from './sqlite/about.ts';

const BY_NAME: Readonly<Record<EngineName, EngineAbout>> = {
  sqlite: SQLITE,
  postgresql: POSTGRESQL,
  mysql: MYSQL,
  mongodb: MONGODB,
};

/** The description of each engine, in the order of the list. */
export const ABOUT_ENGINES: readonly EngineAbout[] = ENGINES.map((name) => BY_NAME[name]);

export const ENGINE_FOLDERS = ABOUT_ENGINES.map(({ folder }) => folder);
