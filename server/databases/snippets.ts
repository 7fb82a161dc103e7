/** Ready-made code that connects to a database, in the languages that most users write. */
import type { EngineName } from './engine.ts';
import type { Snippets } from './schema.ts';

export interface Target {
  /** With the password. */
  readonly uri: string;
  readonly password: string;
}

/** Throws when there are none for the engine. */
export function snippetsFor(engine: EngineName, target: Target): Snippets {
  const write = WRITERS[engine];
  if (write === undefined) throw new Error(`no snippets for ${engine}`);
  return write(target);
}

const WRITERS: Partial<Record<EngineName, (target: Target) => Snippets>> = { sqlite, postgresql, mysql };

/** Its URL without the password ends with a slash, which some clients need and none minds. */
function sqlite({ uri, password }: Target): Snippets {
  const url = uri.slice(0, uri.indexOf('?'));
  const statement = `{"type":"execute","stmt":{"sql":"SELECT 1 AS one"}}`;
  const body = `{"requests":[${statement},{"type":"close"}]}`;
  return {
    cli: `curl '${url}v2/pipeline' -H 'Authorization: Bearer ${password}' -d '${body}'`,
    node: `// npm install @libsql/client
import { createClient } from '@libsql/client';
const client = createClient({ url: '${url}', authToken: '${password}' });
const { rows } = await client.execute('SELECT 1 AS one');
console.log(rows);
`,
    python: `# pip install libsql
import libsql
connection = libsql.connect("${url}", auth_token="${password}")
print(connection.execute("SELECT 1 AS one").fetchall())
`,
    go: goProgram({ driver: 'libsql', module: 'github.com/tursodatabase/libsql-client-go/libsql', uri }),
    php: `<?php
$body = json_encode(['requests' => [
    ['type' => 'execute', 'stmt' => ['sql' => 'SELECT 1 AS one']],
    ['type' => 'close'],
]]);
$answer = file_get_contents('${url}v2/pipeline', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => "Authorization: Bearer ${password}\\r\\nContent-Type: application/json",
    'content' => $body,
]]));
print_r(json_decode($answer, true)['results'][0]['response']['result']['rows']);
`,
  };
}

function mysql({ uri }: Target): Snippets {
  const { username, password, hostname, port, pathname } = new URL(uri);
  const name = pathname.slice(1);
  const place = `mysql:host=${hostname};port=${port};dbname=${name};charset=utf8mb4`;
  const goUri = `${username}:${password}@tcp(${hostname}:${port})/${name}`;
  const login = `--host=${hostname} --port=${port} --user=${username} --password=${password}`;
  return {
    cli: `mariadb ${login} --execute='SELECT 1 AS one' ${name}`,
    node: `// npm install mysql2
import { createConnection } from 'mysql2/promise';
const connection = await createConnection('${uri}');
const [rows] = await connection.query('SELECT 1 AS one');
console.log(rows);
await connection.end();
`,
    python: `# pip install PyMySQL
import pymysql
connection = pymysql.connect(
    host="${hostname}", port=${port}, user="${username}", password="${password}", database="${name}"
)
with connection.cursor() as cursor:
    cursor.execute("SELECT 1 AS one")
    print(cursor.fetchall())
`,
    go: goProgram({ driver: 'mysql', module: 'github.com/go-sql-driver/mysql', uri: goUri }),
    php: `<?php
$connection = new PDO('${place}', '${username}', '${password}');
print_r($connection->query('SELECT 1 AS one')->fetchAll(PDO::FETCH_ASSOC));
`,
  };
}

function postgresql({ uri }: Target): Snippets {
  return {
    cli: `psql '${uri}' -c 'SELECT 1 AS one'`,
    node: `// npm install pg
import pg from 'pg';
const client = new pg.Client({ connectionString: '${uri}' });
await client.connect();
const { rows } = await client.query('SELECT 1 AS one');
console.log(rows);
await client.end();
`,
    python: `# pip install "psycopg[binary]"
import psycopg
with psycopg.connect("${uri}") as connection:
    print(connection.execute("SELECT 1 AS one").fetchall())
`,
    go: goProgram({ driver: 'pgx', module: 'github.com/jackc/pgx/v5/stdlib', uri }),
    php: `<?php
$url = parse_url('${uri}');
$place = "pgsql:host={$url['host']};port={$url['port']};dbname=" . ltrim($url['path'], '/');
$connection = new PDO($place, $url['user'], $url['pass']);
print_r($connection->query('SELECT 1 AS one')->fetchAll(PDO::FETCH_ASSOC));
`,
  };
}

function goProgram({ driver, module, uri }: { driver: string; module: string; uri: string }): string {
  return `package main

import (
	"database/sql"
	"fmt"
	"log"

	_ "${module}"
)

func main() {
	db, err := sql.Open("${driver}", "${uri}")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	var one int
	if err := db.QueryRow("SELECT 1 AS one").Scan(&one); err != nil {
		log.Fatal(err)
	}
	fmt.Println(one)
}
`;
}
