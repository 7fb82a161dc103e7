/** "Show as code": the call that a form is about to make, as curl, SDK code and a command, filled in. */

import { CodeBracketIcon } from '@heroicons/react/24/outline';
import { Code, Group, SegmentedControl, Stack } from '@mantine/core';
import { useState } from 'react';
import { type CallShape, type Methods, OPERATIONS, paramsOf } from '../../../../sdk/index.ts';
import { text } from '../../texts/text.ts';
import { Fold } from '../forms/fold.tsx';
import { shellWord } from '../say.ts';
import { commandOfCall } from './client-commands.ts';
import { CopyIcon } from './copy.tsx';

interface CallSampleProps {
  readonly operation: keyof Methods;
  /** Arguments of its method: ids, then the body or form fields (`@photo.jpg`: a file), then the query. */
  readonly args: readonly unknown[];
}

export function CallSample(props: CallSampleProps) {
  const [language, setLanguage] = useState('curl');
  const command = commandOfCall(props.operation, OPERATIONS[props.operation], props.args);
  const code =
    language === 'command' && command !== undefined
      ? command
      : language === 'sdk'
        ? sdkOf(props)
        : curlOf(props);
  return (
    <Fold icon={CodeBracketIcon} label={text.shell.asCode}>
      <Stack gap="xs" mt="xs">
        <Group justify="space-between">
          <SegmentedControl
            size="xs"
            value={language}
            onChange={setLanguage}
            aria-label={text.shell.language}
            data={[
              { value: 'curl', label: 'curl' },
              { value: 'sdk', label: 'JavaScript' },
              ...(command === undefined ? [] : [{ value: 'command', label: 'cloudlet' }]),
            ]}
          />
          <CopyIcon value={code} label={text.shell.copyCode} />
        </Group>
        <Code block tabIndex={0}>
          {code}
        </Code>
      </Stack>
    </Fold>
  );
}

function curlOf({ operation, args }: CallSampleProps): string {
  const shape: CallShape = OPERATIONS[operation];
  const rest = [...args];
  const params = rest.splice(0, paramsOf(shape).length);
  const body = shape.body === null ? undefined : rest.shift();
  const query = Object.entries((shape.query && rest.shift()) || {});
  let next = 0;
  const path = shape.path.replace(/\{\w+\}/g, () => encodeURIComponent(String(params[next++])));
  const search = new URLSearchParams();
  for (const [name, value] of query) if (value !== undefined) search.set(name, String(value));
  const address = shellWord(location.origin + path + (search.size === 0 ? '' : `?${search}`));
  const isForm = shape.body === 'form';
  const lines = [`curl ${shape.method === 'GET' || isForm ? '' : `-X ${shape.method} `}${address}`];
  lines.push('-H "X-API-Key: $KEY"');
  if (isForm) {
    for (const [name, value] of Object.entries(body ?? {})) lines.push(`-F ${shellWord(`${name}=${value}`)}`);
  } else if (body !== undefined) {
    lines.push("-H 'Content-Type: application/json'", `-d ${shellWord(JSON.stringify(body))}`);
  }
  return lines.join(' \\\n  ');
}

function sdkOf({ operation, args }: CallSampleProps): string {
  return [
    `// npm install ${location.origin}/sdk/cloudlet-sdk.tgz`,
    'import { createCloud } from "cloudlet-sdk";',
    '',
    `const cloud = createCloud({ baseUrl: ${literal(location.origin)}, apiKey: process.env.KEY });`,
    `await cloud.${operation}(${args.map(literal).join(', ')});`,
  ].join('\n');
}

/** A value as code; names of members without quotes. */
function literal(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/"([a-zA-Z_]\w*)":/g, '$1:');
}
