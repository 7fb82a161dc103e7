/**
 * The routines and events of a database as SQL, as mariadb-dump writes them. For the administrator of an
 * operator's server, who alone sees them: mariadb-dump would also read the database's tables and views.
 */
import type { RowDataPacket } from 'mysql2';
import { type Admin, id, rowsOf } from '../admin-store.ts';
import { quoted, withoutDefiner } from './names/sql-parts.ts';

/** The columns of SHOW CREATE for each kind, in an order in which they can be created. */
const KINDS = ['FUNCTION', 'PROCEDURE', 'PACKAGE', 'PACKAGE BODY'];

/** Reads no table, view or routine. */
export async function routinesAsSql(admin: Admin, database: string): Promise<Buffer> {
  const rows = await rowsOf(
    admin,
    'SELECT ROUTINE_TYPE AS type, ROUTINE_NAME AS name FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = ?',
    [database],
  );
  const [schema] = await rowsOf(
    admin,
    'SELECT DEFAULT_COLLATION_NAME AS collation FROM information_schema.SCHEMATA WHERE SCHEMA_NAME = ?',
    [database],
  );
  const pieces: string[] = [];
  for (const kind of KINDS)
    for (const { name } of rows.filter(({ type }) => type === kind)) {
      const [row] = await rowsOf(admin, `SHOW CREATE ${kind} ${id(database)}.${quoted(String(name))}`);
      if (row !== undefined)
        pieces.push(statement(row, { kind, name: String(name), collation: String(schema?.collation) }));
    }
  return Buffer.from(pieces.join(''));
}

interface About {
  readonly kind: string;
  readonly name: string;
  /** The database's own. */
  readonly collation: string;
}

function statement(row: RowDataPacket, { kind, name, collation }: About): string {
  const create = Object.entries(row).find(([column]) => /^Create /i.test(column))?.[1];
  const before = String(row['Database Collation']);
  const [begin, end] = [before, collation].map((one) =>
    before === collation ? '' : `ALTER DATABASE COLLATE ${one};\n`,
  );
  return `
SET @saved_cs_client = @@character_set_client, @saved_col_connection = @@collation_connection;
SET character_set_client = utf8mb4, collation_connection = ${row.collation_connection};
SET @saved_sql_mode = @@sql_mode, sql_mode = '${row.sql_mode}';
/*!50003 DROP ${kind} IF EXISTS ${quoted(name)} */;
${begin}DELIMITER ;;
${withoutDefiner(String(create))} ;;
DELIMITER ;
${end}SET sql_mode = @saved_sql_mode;
SET character_set_client = @saved_cs_client, collation_connection = @saved_col_connection;
`;
}
