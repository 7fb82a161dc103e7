/** "Show as code": the call that a form is about to make, as curl and as SDK code, filled in. */

import { CodeBracketIcon } from '@heroicons/react/24/outline';
import { Code, Group, SegmentedControl, Stack } from '@mantine/core';
import { useState } from 'react';
import type { CallName, Cloud } from '../../../sdk/index.ts';
import { text } from '../texts/text.ts';
import { CopyIcon } from './copy.tsx';
import { Fold } from './fold.tsx';
import { shellWord } from './shell-word.ts';

type MethodName<T> = {
  [K in keyof T & string]: T[K] extends (...args: never[]) => unknown ? K : `${K}.${MethodName<T[K]>}`;
}[keyof T & string];

interface CallSampleProps {
  readonly call: CallName;
  readonly params?: Readonly<Record<string, string>>;
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: unknown;
  /** Lines of a form to be uploaded: `file=@photo.jpg`. */
  readonly form?: readonly string[];
  /** Method of the SDK: `buckets.create`; its arguments follow. */
  readonly method: MethodName<Cloud>;
  readonly args: readonly unknown[];
}

export function CallSample(props: CallSampleProps) {
  const [language, setLanguage] = useState('curl');
  const code = language === 'curl' ? curlOf(props) : sdkOf(props);
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

function curlOf({ call, params = {}, query = {}, body, form = [] }: CallSampleProps): string {
  const [method = 'GET', path = ''] = call.split(' ');
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(params[name] ?? ''));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, String(value));
  const address = shellWord(location.origin + filled + (search.size === 0 ? '' : `?${search}`));
  const lines = [`curl ${method === 'GET' || form.length > 0 ? '' : `-X ${method} `}${address}`];
  lines.push('-H "X-API-Key: $KEY"');
  for (const field of form) lines.push(`-F ${shellWord(field)}`);
  if (body !== undefined)
    lines.push("-H 'Content-Type: application/json'", `-d ${shellWord(JSON.stringify(body))}`);
  return lines.join(' \\\n  ');
}

function sdkOf({ method, args }: CallSampleProps): string {
  return [
    'import { createCloud } from "./sdk/index.ts"; // in a clone of Cloudlet',
    '',
    `const cloud = createCloud({ baseUrl: ${literal(location.origin)}, apiKey: process.env.KEY });`,
    `await cloud.${method}(${args.map(literal).join(', ')});`,
  ].join('\n');
}

/** A value as code; names of members without quotes. */
function literal(value: unknown): string {
  return JSON.stringify(value, null, 2).replace(/"([a-zA-Z_]\w*)":/g, '$1:');
}
