/** Sample code that connects to a PostgreSQL database. */
import type { Snippets, SnippetTarget } from '../../../databases/engine-description.ts';
import { goProgram } from '../shared/go-program.ts';

export function postgresqlSnippets({ uri, tls }: SnippetTarget): Snippets {
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
$dsn = "pgsql:host={$url['host']};port={$url['port']};dbname=" . ltrim($url['path'], '/');${tls ? "\n$dsn .= ';' . str_replace('&', ';', $url['query']);" : ''}
$connection = new PDO($dsn, $url['user'], $url['pass']);
print_r($connection->query('SELECT 1 AS one')->fetchAll(PDO::FETCH_ASSOC));
`,
  };
}
