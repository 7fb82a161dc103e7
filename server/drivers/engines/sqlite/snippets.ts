/** Sample code that connects to a SQLite database. */
import type { Snippets, SnippetTarget } from '../../../databases/engine-description.ts';
import { goProgram } from '../shared/go-program.ts';

/** The URL without the password ends with a slash, which some clients require. */
export function sqliteSnippets({ uri, password }: SnippetTarget): Snippets {
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
