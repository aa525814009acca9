// `node bullmq.cjs work` makes the calls of BullMQ's delayed jobs; `node bullmq.cjs plan < instants` adds a job for
// each line "key seconds" (Unix time), and ends.
const http = require("http");
const { Queue, Worker } = require("bullmq");

const at = new URL(process.env.PEER_REDIS);
const connection = { host: at.hostname, port: Number(at.port), maxRetriesPerRequest: null };
const agent = new http.Agent({ keepAlive: true, maxSockets: 100 });

function call({ key, runTime }) {
  return new Promise((resolve, reject) => {
    const headers = { "webhook-id": key, "X-Scheduler-Run-Time": runTime, "Content-Length": "0" };
    const request = http.request(process.env.PEER_URL, { method: "POST", agent, headers }, (answer) => {
      answer.resume();
      answer.on("end", () => (answer.statusCode < 300 ? resolve() : reject(new Error(answer.statusCode))));
    });
    request.on("error", reject);
    request.end();
  });
}

async function plan() {
  let text = "";
  for await (const part of process.stdin) text += part;
  const rows = text.trim().split("\n").map((line) => line.split(" "));
  const queue = new Queue("calls", { connection });
  const jobs = rows.map(([key, seconds]) => ({
    name: "call",
    data: { key, runTime: new Date(Math.round(seconds * 1000)).toISOString().replace("Z", "+00:00") },
    opts: { jobId: key, delay: Math.max(0, Math.round(seconds * 1000) - Date.now()), removeOnComplete: true },
  }));
  for (let first = 0; first < jobs.length; first += 500) await queue.addBulk(jobs.slice(first, first + 500));
  await queue.close();
}

if (process.argv[2] === "plan") {
  plan().then(() => process.exit(0));
} else {
  new Worker("calls", (job) => call(job.data), { connection, concurrency: 100 });
  console.log("ready");
}
