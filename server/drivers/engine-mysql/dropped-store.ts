/** Databases that their tenants dropped: who may drop tables may drop all of it. */
import type { Connection, RowDataPacket } from 'mysql2/promise';

/** Names of those whose users are there, while they are not. */
export async function droppedByTenants(admin: Connection): Promise<string[]> {
  const [rows] = await admin.query<RowDataPacket[]>(
    `SELECT CONCAT('d_', SUBSTRING(User, 3)) AS name FROM mysql.global_priv WHERE User REGEXP '^u_'
     EXCEPT SELECT SCHEMA_NAME FROM information_schema.SCHEMATA`,
  );
  return rows.map(({ name }) => String(name));
}
