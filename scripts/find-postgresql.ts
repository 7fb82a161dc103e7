/** Ends with 0 where the server would find programs of PostgreSQL; the set-up asks, on another Node. */
import { findPrograms } from '../server/drivers/engines/postgresql/postgresql-programs.ts';

process.exitCode = 'version' in (await findPrograms(null)) ? 0 : 1;
