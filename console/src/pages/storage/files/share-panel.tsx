/** A link for those without an account: how long it lives, and a code for phones. */

import { Button, Group, Select, Stack, Text, TextInput } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import qrcode from 'qrcode-generator';
import { useState } from 'react';
import type { StorageObjectDetails } from '../../../../../sdk/index.ts';
import { cloud } from '../../../cloud.ts';
import { CallSample } from '../../../parts/commands/call-sample.tsx';
import { CopyIcon } from '../../../parts/commands/copy.tsx';
import { Refused, Warning } from '../../../parts/forms/warning.tsx';
import { isLoopback } from '../../../parts/loopback.ts';
import { sayMoment, When } from '../../../parts/tables/when.tsx';
import { text } from '../../../texts/text.ts';
import classes from '../storage.module.css';

const HOUR = 3600;
const TERMS = [
  { value: String(HOUR), label: text.storage.hour },
  { value: String(24 * HOUR), label: text.storage.day },
  { value: String(7 * 24 * HOUR), label: text.storage.week },
  { value: String(30 * 24 * HOUR), label: text.storage.month },
];

export function SharePanel({ object }: { object: StorageObjectDetails }) {
  const [seconds, setSeconds] = useState(String(24 * HOUR));
  const query = { expires_in: Number(seconds) };
  const share = useMutation({
    mutationFn: () => cloud.getCdnUrl(object.id, query),
    meta: { shown: true },
  });
  return (
    <Stack>
      <Group align="flex-end">
        <Select
          label={text.storage.lives}
          data={TERMS}
          value={seconds}
          allowDeselect={false}
          onChange={(value) => setSeconds(value ?? seconds)}
          w={180}
        />
        <Button onClick={() => share.mutate()} loading={share.isPending}>
          {text.storage.makeLink}
        </Button>
      </Group>
      <Refused error={share.error} />
      {share.data !== undefined && (
        <>
          <TextInput
            label={text.storage.link}
            readOnly
            value={share.data.cdn_url}
            onFocus={({ currentTarget }) => currentTarget.select()}
            rightSection={<CopyIcon value={share.data.cdn_url} label={text.storage.copyLink} />}
          />
          <Text size="sm" c="dimmed">
            {text.storage.ends} <When at={share.data.expires_at} /> ({sayMoment(share.data.expires_at)}).{' '}
            {text.storage.linkLead}
          </Text>
          {isLoopback(share.data.cdn_url) && <Warning title={text.storage.linkOnlyHere} />}
          <QrCode value={share.data.cdn_url} />
        </>
      )}
      <CallSample operation="getCdnUrl" args={[object.id, query]} />
    </Stack>
  );
}

/** Dark on white in both themes: cameras want it so. */
function QrCode({ value }: { value: string }) {
  const code = qrcode(0, 'L');
  code.addData(value);
  code.make();
  const size = code.getModuleCount();
  const squares: string[] = [];
  for (let row = 0; row < size; row++) {
    for (let column = 0; column < size; column++) {
      if (code.isDark(row, column)) squares.push(`M${column} ${row}h1v1h-1z`);
    }
  }
  return (
    <svg
      className={classes.qrCode}
      viewBox={`0 0 ${size} ${size}`}
      role="img"
      aria-label={text.storage.qrCode}
      shapeRendering="crispEdges"
    >
      <path d={squares.join('')} fill="#000" />
    </svg>
  );
}
