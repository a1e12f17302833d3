"""Optimisers against PyTorch's: parameters that step apart, gradients after a step, groups added later, classes of one's own, copies."""
import copy
import pickle
import unittest

import ingot
from common import TestCase, needs_torch, torch
from ingot import nn

KINDS = {"SGD": dict(lr=0.1, momentum=0.9, dampening=0.5), "Adam": dict(lr=0.1), "AdamW": dict(lr=0.1, amsgrad=True),
         "RMSprop": dict(lr=0.1, momentum=0.5, centered=True), "Adagrad": dict(lr=0.1, lr_decay=0.1), "Adadelta": dict(lr=1.0), "Adamax": dict(lr=0.1),
         "NAdam": dict(lr=0.1), "RAdam": dict(lr=0.1)}


def pair(library):
    """Two parameters, and a loss of both or of the first alone."""
    params = [library.nn.Parameter(library.ones(2)), library.nn.Parameter(library.ones(3) * 2)]
    return params, lambda both: (params[0] ** 2).sum() + ((params[1] ** 2 * 3).sum() if both else 0)


class Steps(TestCase):
    def agree(self, program, **tolerance):
        for a, b in zip(program(ingot), program(torch)):
            self.close(a, b, **tolerance)

    @needs_torch
    def test_a_parameter_counts_its_own_steps(self):
        for name, options in KINDS.items():
            def program(library):
                params, loss = pair(library)
                opt = getattr(library.optim, name)(params, **options)
                for i in range(8):
                    opt.zero_grad()
                    loss(i == 3 or i > 5).backward()
                    opt.step()
                return params

            with self.subTest(name):
                self.agree(program, rtol=1e-4, atol=1e-5)

    @needs_torch
    def test_two_steps_on_one_backward(self):
        def program(library):
            params, loss = pair(library)
            opt = library.optim.Adam(params, lr=0.1)
            for i in range(4):
                opt.zero_grad()
                loss(True).backward()
                opt.step()
                opt.step()
            return params

        self.agree(program)

    @needs_torch
    def test_loops_without_zero_grad_add_up(self):
        for every in (1000, 2, 3):
            def program(library):
                params, loss = pair(library)
                opt = library.optim.SGD(params, lr=0.01)
                for i in range(7):
                    if i % every == 0:
                        opt.zero_grad()
                    loss(True).backward()
                    opt.step()
                return params + [p.grad for p in params]

            with self.subTest(every):
                self.agree(program)

    @needs_torch
    def test_a_group_added_later_leaves_the_others_their_state(self):
        for name, options in KINDS.items():
            def program(library):
                params, loss = pair(library)
                opt = getattr(library.optim, name)(params[:1], **options)
                for i in range(6):
                    if i == 3:
                        opt.add_param_group({"params": params[1:], "lr": 0.02})
                    opt.zero_grad()
                    loss(True).backward()
                    opt.step()
                return params

            with self.subTest(name):
                self.agree(program, rtol=1e-4, atol=1e-5)
        opt = ingot.optim.SGD([nn.Parameter(ingot.ones(1))])
        with self.assertRaisesRegex(ingot.ValueError, "twice"):
            opt.add_param_group({"params": opt.param_groups[0]["params"]})
        self.assertEqual(len(opt.param_groups), 1)

    @needs_torch
    def test_one_cycle_moves_momentum(self):
        for name, options in (("SGD", dict(momentum=0.9)), ("SGD", {}), ("AdamW", {}), ("RMSprop", dict(momentum=0.5))):
            for more in ({}, dict(three_phase=True, anneal_strategy="linear"), dict(cycle_momentum=False)):
                def program(library):
                    params, loss = pair(library)
                    opt = getattr(library.optim, name)(params, lr=0.1, **options)
                    schedule = library.optim.lr_scheduler.OneCycleLR(opt, 0.05, total_steps=10, **more)
                    seen = []
                    for i in range(9):
                        opt.zero_grad()
                        loss(True).backward()
                        opt.step()
                        schedule.step()
                        g = opt.param_groups[0]
                        seen += [g["lr"], g["betas"][0] if "betas" in g else g["momentum"]]
                    return params + [library.tensor(seen)]

                with self.subTest(name=name, **more):
                    self.agree(program, rtol=1e-4, atol=1e-5)

    @needs_torch
    def test_state_has_the_layout_of_torch(self):
        def states(library):
            params, loss = pair(library)
            opt = library.optim.AdamW(params, lr=0.1)
            for i in range(3):
                opt.zero_grad()
                loss(i > 0).backward()
                opt.step()
            return params, loss, opt

        (params, loss, mine), (theirs_params, theirs_loss, theirs) = states(ingot), states(torch)
        a, b = mine.state_dict(), theirs.state_dict()
        self.assertEqual({k: sorted(v) for k, v in a["state"].items()}, {k: sorted(v) for k, v in b["state"].items()})
        self.assertEqual([g["params"] for g in a["param_groups"]], [g["params"] for g in b["param_groups"]])
        self.assertEqual([a["state"][i]["step"].item() for i in (0, 1)], [3, 2])
        for i in (0, 1):
            self.close(a["state"][i]["exp_avg_sq"], b["state"][i]["exp_avg_sq"])
            self.close(mine.state[params[i]]["exp_avg"], theirs.state[theirs_params[i]]["exp_avg"])
        # Continues from PyTorch's state.
        fresh = [nn.Parameter(p.detach().clone()) for p in params]
        opt = ingot.optim.AdamW(fresh)
        opt.load_state_dict({"state": {i: {k: ingot.tensor(v.numpy()) for k, v in e.items()} for i, e in b["state"].items()},
                             "param_groups": b["param_groups"]})
        ((fresh[0] ** 2).sum() + (fresh[1] ** 2 * 3).sum()).backward()
        opt.step()
        theirs.zero_grad()
        theirs_loss(True).backward()
        theirs.step()
        self.close(fresh[1], theirs_params[1])

    def test_state_that_does_not_fit_changes_nothing(self):
        params, loss = pair(ingot)
        opt = ingot.optim.Adam(params, lr=0.1)
        loss(True).backward()
        opt.step()
        before = opt.state_dict()
        bad = copy.deepcopy(before)
        bad["state"][0]["exp_avg"] = ingot.ones(7)
        bad["param_groups"][0]["lr"] = 5.0
        for wrong, error in ((bad, ingot.ShapeError), ({"state": {}, "param_groups": []}, ingot.ValueError)):
            with self.assertRaises(error):
                opt.load_state_dict(wrong)
        self.assertEqual(opt.param_groups[0]["lr"], 0.1)
        self.assertEqual(opt.state_dict()["state"][0]["exp_avg"].tolist(), before["state"][0]["exp_avg"].tolist())


class Gradients(TestCase):
    def loop(self, after, steps=6, kind=ingot.optim.SGD, clear=lambda opt: opt.zero_grad()):
        params, loss = pair(ingot)
        opt = kind(params, lr=0.01)
        for i in range(steps):
            clear(opt)
            loss(True).backward()
            opt.step()
            after(i, params)
        return params

    def test_a_program_that_reads_them_finds_them(self):
        self.loop(lambda i, params: self.assertEqual(params[0].grad.shape, (2,)))
        self.loop(lambda i, params: i or params[1].grad.sum().item(), steps=1)
        params = self.loop(lambda i, params: i == 1 and params[1].grad, 8)
        self.assertIsNotNone(params[0].grad)

    def test_where_nobody_reads_they_go_and_a_later_read_says_so(self):
        params = self.loop(lambda i, params: None)
        with self.assertRaisesRegex(ingot.Error, "keep_gradients=True"):
            params[0].grad
        copy.deepcopy(params[0])  # is no read
        params[0].grad = None
        self.assertIsNone(params[0].grad)
        # Neither cleared nor kept: other weights than PyTorch's would follow.
        params, loss = pair(ingot)
        opt = ingot.optim.SGD(params, lr=0.01)
        for i in range(3):
            opt.zero_grad()
            loss(True).backward()
            opt.step()
        with self.assertRaisesRegex(ingot.StateError, "zero_grad"):
            opt.step()
        loss(True).backward()
        with self.assertRaisesRegex(ingot.StateError, "zero_grad"):
            opt.step()
        opt.zero_grad()
        loss(True).backward()
        opt.step(keep_gradients=True)
        self.assertIsNotNone(params[0].grad)

    def test_zeros_instead_of_none(self):
        for zero in (lambda opt, net: opt.zero_grad(set_to_none=False), lambda opt, net: net.zero_grad(set_to_none=False)):
            net = nn.Linear(2, 2)
            unused = nn.Parameter(ingot.ones(1))
            opt = ingot.optim.SGD([*net.parameters(), unused], lr=0.1)
            for i in range(5):
                net(ingot.ones(1, 2)).sum().backward()
                opt.step()
                zero(opt, net)
                self.assertEqual((net.bias.grad.tolist(), unused.grad), ([0, 0], None))

    @needs_torch
    def test_norms(self):
        grads = [ingot.ones(4), ingot.full((2,), 3.0)]
        for kind in (2.0, 1.0, float("inf")):
            self.close(nn.utils.get_total_norm(grads, kind), torch.nn.utils.get_total_norm([torch.ones(4), torch.full((2,), 3.0)], kind))
        p = nn.Parameter(ingot.ones(2))
        (p * float("inf")).sum().backward()
        for call in (lambda: nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True),
                     lambda: nn.utils.get_total_norm([p.grad], error_if_nonfinite=True)):
            with self.assertRaisesRegex(RuntimeError, "not finite"):
                call()
        self.assertEqual(p.grad.tolist(), [float("inf")] * 2)
        p.grad = ingot.tensor([3.0, 4.0])
        self.assertEqual(nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True).item(), 5)

    def test_loss_scaling_keeps_them_too(self):
        params, loss = pair(ingot)
        opt, scaler = ingot.optim.SGD(params, lr=0.01), ingot.amp.GradScaler(init_scale=8.0)
        for i in range(5):
            opt.zero_grad()
            before = params[0].detach().clone()
            scaler.scale(loss(True)).backward()
            scaler.step(opt)
            scaler.update()
            self.close(params[0].grad, before * 2)


class Signs(ingot.optim.Optimizer):
    def __init__(self, params, lr=0.1):
        super().__init__(params, dict(lr=lr))

    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                state["step"] = state.get("step", 0) + 1
                state["last"] = p.grad.detach().clone()
                with ingot.no_grad():
                    p.add_(p.grad.sign(), alpha=-group["lr"])


class OwnAndCopies(TestCase):
    def test_an_optimiser_written_in_python(self):
        params, loss = pair(ingot)
        opt = Signs([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}])
        calls = []
        hook = opt.register_step_post_hook(lambda o, args, kwargs: calls.append(o))
        schedule = ingot.optim.lr_scheduler.StepLR(opt, 1, gamma=0.5)
        for i in range(2):
            opt.zero_grad()
            loss(True).backward()
            opt.step()
            schedule.step()
            hook.remove()
        self.close(params[0], [0.85, 0.85])
        self.close(params[1], [1.25] * 3)
        self.assertEqual((opt.state[params[0]]["step"], calls, opt.defaults), (2, [opt], {"lr": 0.1}))
        other = Signs([{"params": params[:1]}, {"params": params[1:]}])
        other.load_state_dict(opt.state_dict())
        self.assertEqual((other.state[params[1]]["step"], other.param_groups[1]["lr"]), (2, 0.125))
        self.assertEqual(other.state[params[0]]["last"].tolist(), opt.state[params[0]]["last"].tolist())
        other.add_param_group({"params": nn.Parameter(ingot.ones(1))})
        opt.zero_grad(set_to_none=False)
        self.assertEqual(params[0].grad.tolist(), [0, 0])
        with self.assertRaises(NotImplementedError):
            ingot.optim.Optimizer(params, {}).step()

    @needs_torch
    def test_loss_scaling_of_one_written_in_python(self):
        def program(library):
            class Own(library.optim.Optimizer):
                def __init__(self, params):
                    super().__init__(params, dict(lr=0.1, momentum=0.5))

                @library.no_grad()
                def step(self, closure=None):
                    for group in self.param_groups:
                        for p in group["params"]:
                            if p.grad is not None:
                                mean = self.state[p].setdefault("mean", library.zeros_like(p))
                                mean.mul_(group["momentum"]).add_(p.grad)
                                p.add_(mean, alpha=-group["lr"])

            params, loss = pair(library)
            opt, scaler = Own(params), library.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2)
            scales = []
            for i in range(6):
                opt.zero_grad()
                scaler.scale(loss(i > 2) * (float("inf") if i == 3 else 1.0)).backward()
                if i % 2:
                    scaler.unscale_(opt)
                scaler.step(opt)
                scaler.update()
                scales.append(scaler.get_scale())
            return [*params, library.tensor(scales), opt.state[params[1]]["mean"]]

        for a, b in zip(program(ingot), program(torch)):
            self.close(a, b)

    @needs_torch
    def test_a_schedule_written_in_python(self):
        class Restarts:
            """A callable with state."""

            def __init__(self):
                self.seen = 0

            def __call__(self, epoch):
                self.seen += 1
                return 0.5 ** (epoch % 4) * self.seen

        def program(library):
            class Falling(library.optim.lr_scheduler.LRScheduler):
                def __init__(self, optimizer, every, last_epoch=-1):
                    self.every = every
                    super().__init__(optimizer, last_epoch)

                def get_lr(self):
                    if self.last_epoch == 0 or self.last_epoch % self.every:
                        return [g["lr"] for g in self.optimizer.param_groups]
                    return [g["lr"] * 0.5 + base * 0.01 for g, base in zip(self.optimizer.param_groups, self.base_lrs)]

                def _get_closed_form_lr(self):
                    return [base * 0.5 ** self.last_epoch for base in self.base_lrs]

            def made():
                params, _ = pair(library)
                opt = library.optim.SGD([{"params": params[:1]}, {"params": params[1:], "lr": 0.5}], lr=0.1)
                kinds = library.optim.lr_scheduler
                return opt, [Falling(opt, 2), kinds.LambdaLR(opt, [Restarts(), lambda epoch: 1.0])]

            rates = []
            opt, (falling, by_function) = made()
            for s in (falling, by_function):
                for i in range(5):
                    opt.step()
                    s.step()
                    rates.append(s.get_last_lr())
            other, schedules = made()
            for s, saved in zip(schedules, (falling, by_function)):
                s.load_state_dict(saved.state_dict())
            other.load_state_dict(opt.state_dict())
            rates += [[schedules[0].every, schedules[0].last_epoch], [schedules[1].lr_lambdas[0].seen, schedules[0]._step_count]]
            for s in schedules:
                other.step()
                s.step()
                rates.append(s.get_last_lr())
            return rates

        self.close(ingot.tensor(program(ingot)), torch.tensor(program(torch)))
        with self.assertRaisesRegex(TypeError, "optimiser"):
            ingot.optim.lr_scheduler.StepLR([ingot.ones(1)], 1)

    def test_copies_go_on_alone(self):
        def both(thing):
            yield copy.deepcopy(thing)
            yield pickle.loads(pickle.dumps(thing))

        def steps(net, opt, schedule, n):
            for i in range(n):
                opt.zero_grad()
                (net(ingot.ones(2, 3)) ** 2).sum().backward()
                opt.step()
                schedule.step()

        for kind in (ingot.optim.Adam, ingot.optim.NAdam, lambda p, lr: ingot.optim.SGD(p, lr, momentum=0.9), Signs):
            net = nn.Linear(3, 2)
            opt = kind(net.parameters(), lr=0.01)
            schedule = ingot.optim.lr_scheduler.StepLR(opt, 2)
            steps(net, opt, schedule, 3)
            copies = list(both((net, opt, schedule)))
            self.assertIs(copies[0][1].param_groups[0]["params"][0], copies[0][0].weight)
            steps(net, opt, schedule, 3)
            for other in copies:
                self.assertNotEqual(other[0].weight.tolist(), net.weight.tolist())
                steps(*other, 3)
                self.assertEqual(other[0].weight.tolist(), net.weight.tolist())
                self.assertEqual(other[2].get_last_lr(), schedule.get_last_lr())
        twin = copy.copy(opt)
        self.assertIs(twin.param_groups[0]["params"][0], net.weight)

    def test_parameters_of_another_type_later(self):
        for kind in (ingot.optim.Adam, lambda p: ingot.optim.SGD(p, 0.1, momentum=0.9)):
            net = nn.Linear(2, 2)
            opt = kind(net.parameters())
            for i in range(3):
                if i == 1:
                    net.double()
                before = net.weight.tolist()
                opt.zero_grad()
                net(ingot.ones(1, 2, dtype=net.weight.dtype)).sum().backward()
                opt.step()
                self.assertNotEqual(net.weight.tolist(), before)
            self.assertIs(net.weight.dtype, ingot.float64)


if __name__ == "__main__":
    unittest.main()
