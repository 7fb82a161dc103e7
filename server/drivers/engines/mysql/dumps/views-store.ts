/**
 * The views of a database as SQL. mariadb-dump would ask for the columns of each view, which needs the rights
 * of all functions that it calls, and fails for a view whose table, column or function is gone.
 */
import type { Connection as Driver } from 'mysql2';
import { ask } from '../mysql-links.ts';
import { QUOTED_PARTS, quoted, usedNames, withoutDefiner } from './names/sql-parts.ts';

interface BrokenView {
  readonly name: string;
  /** The server's message. */
  readonly reason: string;
}

interface WrittenViews {
  /** In an order in which they can be created. */
  readonly sql: Buffer;
  /** Views that the server would refuse to create; their statements are comments. */
  readonly broken: readonly BrokenView[];
}

interface View {
  readonly name: string;
  readonly create: string;
  readonly collation: string;
  readonly reason: string | null;
}

interface Written {
  readonly database: string;
  /** Names of views. */
  readonly names: readonly string[];
  /** Statement that limits the time of each statement. */
  readonly limit: string;
}

interface Refused extends Error {
  readonly errno: number;
}

const GONE = [1146, 1347];
/** Locked, deadlocked, altered, ended, or out of memory: another time it may be read. */
const LATER = [1205, 1213, 1412, 1317, 1927, 1053, 1037, 1041];
/** Out of time, and a definer that is not here: the one who loads the dump becomes the definer. */
const FINE = [1969, 1449];

/**
 * On a connection to the database as a user with no other rights than its tenant's: functions with constant
 * arguments may run when the server looks at a view. Nothing that they write stays.
 */
export async function viewsAsSql(driver: Driver, { database, names, limit }: Written): Promise<WrittenViews> {
  await ask(driver, limit);
  await ask(driver, "SET SESSION sql_mode = ''");
  const views: View[] = [];
  for (const name of names) {
    await ask(driver, 'START TRANSACTION');
    const view = await viewOf(driver, { database, name });
    await ask(driver, 'ROLLBACK');
    if (view !== null) views.push(view);
  }
  const written = inOrder(views).map((view) => (view.reason === null ? statement(view) : comment(view)));
  const broken = views.flatMap(({ name, reason }) => (reason === null ? [] : [{ name, reason }]));
  return { sql: Buffer.from(written.join('')), broken };
}

/** Null: it was dropped meanwhile. */
async function viewOf(
  driver: Driver,
  { database, name }: { readonly database: string; readonly name: string },
): Promise<View | null> {
  const shown = await answered(ask(driver, `SHOW CREATE VIEW ${quoted(name)}`));
  if (!('rows' in shown)) {
    if (GONE.includes(shown.errno)) return null;
    if (FINE.includes(shown.errno)) throw shown;
    return { name, create: '', collation: '', reason: shown.message };
  }
  const [row] = shown.rows;
  const create = withoutDefiner(String(row?.['Create View']));
  const looked = await answered(ask(driver, `SHOW COLUMNS FROM ${quoted(name)}`));
  const isFine = 'rows' in looked || FINE.includes(looked.errno);
  return {
    name,
    create: withoutDatabase(create, database),
    collation: String(row?.collation_connection),
    reason: isFine ? null : looked.message,
  };
}

/** The server's refusal, if it says something about the view. */
async function answered<Row>(rows: Promise<Row[]>): Promise<{ readonly rows: Row[] } | Refused> {
  try {
    return { rows: await rows };
  } catch (error) {
    const refused = error as Refused & { readonly sqlState?: string };
    if (refused.sqlState === undefined || LATER.includes(refused.errno)) throw error;
    return refused;
  }
}

/** The loaded database has another name. */
function withoutDatabase(create: string, database: string): string {
  const own = `${quoted(database)}.`;
  return create.replace(QUOTED_PARTS, (part) => (part === own ? '' : part));
}

/** Each view after those that it reads. */
function inOrder(views: readonly View[]): View[] {
  const byName = new Map(views.map((view) => [view.name, view]));
  const placed = new Set<View>();
  const begun = new Set<View>();
  const place = (first: View) => {
    // Without recursion: views may be stacked deeply.
    const stack = [first];
    for (let view = stack.at(-1); view !== undefined; view = stack.at(-1)) {
      const isNew = !begun.has(view);
      begun.add(view);
      const needed = isNew
        ? [...usedNames(view.create).tables].flatMap((name) => byName.get(name) ?? [])
        : [];
      const next = needed.filter((one) => !begun.has(one));
      if (next.length > 0) stack.push(...next);
      else {
        placed.add(view);
        stack.pop();
      }
    }
  };
  for (const view of views) if (!placed.has(view)) place(view);
  return [...placed];
}

function statement({ name, create, collation }: View): string {
  return `
--
-- View ${oneLine(quoted(name))}
--

/*!50001 SET @saved_cs_client = @@character_set_client, @saved_col_connection = @@collation_connection */;
/*!50001 SET character_set_client = utf8mb4, collation_connection = ${collation} */;
${create};
/*!50001 SET character_set_client = @saved_cs_client, collation_connection = @saved_col_connection */;
`;
}

function comment({ name, create, reason }: View): string {
  return `
--
-- View ${oneLine(quoted(name))} could not be created again: ${oneLine(reason ?? '')}
-- ${oneLine(create)};
--
`;
}

function oneLine(text: string): string {
  return text.replaceAll(/[\r\n]/g, ' ');
}
