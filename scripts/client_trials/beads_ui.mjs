// Sends every request of beads-ui to its server, which calls bd. Prints a JSON object: version, and for each request
// its name and whether it worked.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { join } from 'node:path';

const [root, bd, workspace] = process.argv.slice(2);
const require = createRequire(join(root, 'package.json'));
const { WebSocket } = require('ws');
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const ANSWER_LIMIT_MS = 60_000;

const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, '127.0.0.1', () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});
const environment = { ...process.env, BD_BIN: bd, PORT: String(port), HOST: '127.0.0.1' };
const server = spawn(process.execPath, [join(root, 'server', 'index.js')], {
  cwd: workspace, env: environment, stdio: ['ignore', 'inherit', 'inherit'].map(() => 'ignore'),
});
const results = [];
const waiting = new Map();
let snapshots = new Map();

async function connected() {
  for (let attempt = 0; attempt < 100; attempt++) {
    try {
      return await new Promise((resolve, reject) => {
        const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
        socket.once('open', () => resolve(socket));
        socket.once('error', reject);
      });
    } catch {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  throw new Error('the server of beads-ui does not answer');
}

try {
  const socket = await connected();
  socket.on('message', (data) => {
    const message = JSON.parse(String(data));
    if (message.type === 'snapshot') snapshots.set(message.payload?.id, message.payload?.issues ?? []);
    waiting.get(message.id)?.(message);
  });
  let number = 0;
  const request = async (type, payload, name = type) => {
    const id = `trial-${++number}`;
    const answer = await new Promise((resolve) => {
      const late = setTimeout(() => resolve({ ok: false, error: { message: 'no answer' } }), ANSWER_LIMIT_MS);
      waiting.set(id, (message) => { clearTimeout(late); resolve(message); });
      socket.send(JSON.stringify({ id, type, payload }));
    });
    results.push({ call: name, worked: answer.ok === true, ...(answer.ok ? {} : { error: answer.error?.message }) });
    return answer.payload;
  };
  await request('ping', {});
  await request('get-workspace', {});
  await request('list-workspaces', {});
  await request('create-issue', { title: 'One', type: 'bug', priority: 1, description: 'first' });
  await request('create-issue', { title: 'Two', type: 'epic' }, 'create-issue of an epic');
  await request('create-issue', { title: 'Three', type: 'task' }, 'create-issue of a task');
  for (const type of ['all-issues', 'epics', 'blocked-issues', 'ready-issues', 'in-progress-issues', 'closed-issues']) {
    await request('subscribe-list', { id: type, type }, `subscribe-list ${type}`);
  }
  const issues = snapshots.get('all-issues') ?? [];
  const one = issues.find((issue) => issue.title === 'One')?.id ?? 'no-id';
  const three = issues.find((issue) => issue.title === 'Three')?.id ?? 'no-id';
  await request('subscribe-list', { id: 'detail', type: 'issue-detail', params: { id: one } }, 'subscribe-list issue-detail');
  await request('update-status', { id: one, status: 'in_progress' });
  await request('update-priority', { id: one, priority: 0 });
  await request('update-assignee', { id: one, assignee: 'ann' });
  for (const field of ['title', 'description', 'acceptance', 'notes', 'design']) {
    await request('edit-text', { id: one, field, value: `new ${field}` }, `edit-text ${field}`);
  }
  await request('dep-add', { a: three, b: one });
  await request('dep-remove', { a: three, b: one });
  await request('label-add', { id: one, label: 'ui' });
  await request('label-remove', { id: one, label: 'ui' });
  await request('add-comment', { id: one, text: 'a comment' });
  await request('get-comments', { id: one });
  await request('update-status', { id: one, status: 'closed' }, 'update-status closed');
  await request('unsubscribe-list', { id: 'epics' });
  await request('set-workspace', { path: workspace });
  await request('delete-issue', { id: three });
  socket.close();
} finally {
  server.kill();
}
console.log(JSON.stringify({ version, results }));
process.exit(0);
