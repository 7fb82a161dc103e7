/** Exits with 0 if the server would find PostgreSQL's programs; the set-up runs it with another Node. */
import { findPrograms } from '../server/drivers/engines/postgresql/postgresql-programs.ts';

process.exitCode = 'version' in (await findPrograms(null)) ? 0 : 1;
